"""Report of a version that a data plane or relay serves and the database has lost."""

import orjson

from controlplane.dataplane.config import Config
from controlplane.dataplane.memory.served_copy import Copy
from switches.snapshot import SnapshotVersion

from .database import Connection, connect, has_lost_sql

# Compared again here, because the data plane's connection may have read from a replica. A replica
# refuses the insertion.
INSERT_LOST_VERSION = """
    INSERT INTO switches_lostversion (epoch, version, published_at, entries, plane)
    SELECT %s, %s, %s, %s::jsonb, %s FROM switches_publication p, core_credentials c
    WHERE ({has_lost})
       OR (p.epoch = %s AND (c.revision < %s OR p.registrations < %s OR
           coalesce((SELECT version FROM breakers_registry), 0) < %s))
    ON CONFLICT DO NOTHING
"""
RESTORED_IN = """
    SELECT closed_version FROM switches_lostversion
    WHERE epoch = %s AND version = %s AND published_at = %s
"""
NO_NUMBERS = (-1, -1, -1)


async def insert_lost_version(
    config: Config, copy: Copy, *, revision: int, registrations: int, policies: int
) -> bool:
    """Insert the version of `copy` if the database has lost it, or any of these numbers.

    Return True if a row was inserted. Raise psycopg's errors.
    """
    entries = orjson.dumps([orjson.Fragment(element) for element in copy.elements.values()])
    numbers = (revision, registrations, policies)
    connection = await connect(config)
    try:
        return await _insert(connection, copy.publication, entries, config.plane, numbers)
    finally:
        connection.pgconn.finish()


async def ask_version(
    config: Config, served: SnapshotVersion, entries: bytes, plane: str
) -> tuple[bool, int | None]:
    """Return True if the database has lost the version `served`, which is inserted then.

    Return with it the version in which all that it engaged was engaged again, None if there is
    none. Raise psycopg's errors.
    """
    connection = await connect(config)
    try:
        cursor = await connection.execute(has_lost_sql(connection, served).encode())
        has_lost = await cursor.fetchone() == (True,)
        if has_lost:
            await _insert(connection, served, entries, plane, NO_NUMBERS)
            return True, None
        cursor = await connection.execute(RESTORED_IN, tuple(_key(served)))
        row = await cursor.fetchone()
        return False, None if row is None else row[0]
    finally:
        connection.pgconn.finish()


async def _insert(
    connection: Connection,
    served: SnapshotVersion,
    entries: bytes,
    plane: str,
    numbers: tuple[int, int, int],
) -> bool:
    statement = INSERT_LOST_VERSION.format(has_lost=has_lost_sql(connection, served))
    parameters = (*_key(served), entries.decode(), plane, served.epoch, *numbers)
    cursor = await connection.execute(statement.encode(), parameters)
    return cursor.rowcount == 1


def _key(served: SnapshotVersion) -> tuple[object, ...]:
    return served.epoch, served.version, served.published_at
