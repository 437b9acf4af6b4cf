"""Report of a version that the data plane serves and the database has lost."""

import orjson

from controlplane.dataplane.config import Config
from controlplane.dataplane.memory.served_copy import Copy

from .database import connect, has_lost_sql

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


async def insert_lost_version(
    config: Config, copy: Copy, *, revision: int, registrations: int, policies: int
) -> bool:
    """Insert the version of `copy` if the database has lost it, or any of these numbers.

    Return True if a row was inserted. Raise psycopg's errors.
    """
    version = copy.publication
    values = (version.epoch, version.version, version.published_at)
    entries = orjson.dumps([orjson.Fragment(element) for element in copy.elements.values()])
    connection = await connect(config)
    try:
        statement = INSERT_LOST_VERSION.format(has_lost=has_lost_sql(connection, version))
        numbers = (version.epoch, revision, registrations, policies)
        parameters = (*values, entries.decode(), config.plane, *numbers)
        cursor = await connection.execute(statement.encode(), parameters)
        return cursor.rowcount == 1
    finally:
        connection.pgconn.finish()
