"""How the ledger's notes become rows: a few statements with many rows each.

Every statement takes its instances in the order of their ids, so that ledgers of several processes
wait for each other and never in a circle. Whatever order they write in, the newest word stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from controlplane.dataplane.database import Connection
from controlplane.dataplane.reports import Row

NEWER = """EXCLUDED.applied_at IS NOT NULL
    AND (i.applied_at IS NULL OR EXCLUDED.applied_at > i.applied_at)"""
HEARD = f"""
    INSERT INTO core_instance AS i (id, service, heard_at, applied_epoch, applied_version,
                                    applied_at, reported, checks)
    SELECT id, service, heard_at, epoch, version, applied_at, '{{}}', '{{}}'
    FROM unnest(%s::text[], %s::text[], %s::timestamptz[], %s::uuid[], %s::bigint[],
                %s::timestamptz[])
         AS said (id, service, heard_at, epoch, version, applied_at)
    ORDER BY id COLLATE "C"
    ON CONFLICT (id) DO UPDATE SET
        heard_at = greatest(i.heard_at, EXCLUDED.heard_at),
        applied_epoch = CASE WHEN {NEWER} THEN EXCLUDED.applied_epoch ELSE i.applied_epoch END,
        applied_version = CASE WHEN {NEWER} THEN EXCLUDED.applied_version
                               ELSE i.applied_version END,
        applied_at = greatest(i.applied_at, EXCLUDED.applied_at)
    WHERE i.heard_at IS NULL OR EXCLUDED.heard_at > i.heard_at OR ({NEWER})
"""  # noqa: S608
ACKNOWLEDGED = """
    INSERT INTO core_acknowledgement AS a (epoch, version, instance, acknowledged_at)
    SELECT * FROM unnest(%s::uuid[], %s::bigint[], %s::text[], %s::timestamptz[])
         AS said (epoch, version, instance, acknowledged_at)
    ORDER BY instance COLLATE "C", epoch, version
    ON CONFLICT (epoch, version, instance) DO UPDATE SET acknowledged_at = EXCLUDED.acknowledged_at
    WHERE EXCLUDED.acknowledged_at < a.acknowledged_at
"""
MAKE_ROWS = """
    INSERT INTO core_instance (id, service, reported, checks)
    SELECT id, service, '{}', '{}' FROM unnest(%s::text[], %s::text[]) AS named (id, service)
    ORDER BY id COLLATE "C"
    ON CONFLICT (id) DO NOTHING
"""
LOCK_ROWS = """
    SELECT id, service, boot, started_at, seq, reported_at, heard_at, applied_epoch,
           applied_version, applied_at, config_version, reported::text, checks::text
    FROM core_instance WHERE id = ANY(%s) ORDER BY id FOR UPDATE
"""
STORE_ROWS = """
    UPDATE core_instance i SET
        boot = r.boot, started_at = r.started_at, seq = r.seq, reported_at = r.reported_at,
        heard_at = r.heard_at, applied_epoch = r.applied_epoch,
        applied_version = r.applied_version, applied_at = r.applied_at,
        config_version = r.config_version, reported = r.reported::jsonb, checks = r.checks::jsonb
    FROM unnest(%s::text[], %s::uuid[], %s::timestamptz[], %s::bigint[], %s::timestamptz[],
                %s::timestamptz[], %s::uuid[], %s::bigint[], %s::timestamptz[], %s::bigint[],
                %s::text[], %s::text[])
         AS r (id, boot, started_at, seq, reported_at, heard_at, applied_epoch, applied_version,
               applied_at, config_version, reported, checks)
    WHERE i.id = r.id
"""


class Said(NamedTuple):
    """An instance was heard from; `applied_at` and what it applied then are None if it said none
    of it."""

    id: str
    service: str
    heard_at: datetime
    epoch: UUID | None
    version: int | None
    applied_at: datetime | None


class Ack(NamedTuple):
    """An instance said that it applies a version."""

    epoch: UUID
    version: int
    instance: str
    at: datetime


async def write_heard(connection: Connection, said: Sequence[Said], acks: Sequence[Ack]) -> None:
    """Take in what was heard, in one transaction. Ids in `said` are unique."""
    async with connection.transaction():
        if said:
            await connection.execute(HEARD, _columns(said, len(Said._fields)))
        await write_acks(connection, acks)


async def write_acks(connection: Connection, acks: Sequence[Ack]) -> None:
    """Note acknowledgements; of several of one version the earliest stands."""
    if acks:
        await connection.execute(ACKNOWLEDGED, _columns(acks, len(Ack._fields)))


async def lock_rows(connection: Connection, services: Mapping[str, str]) -> dict[str, Row]:
    """The rows of instances (id → service) by id, made if need be, held to the transaction's end.

    A row that was pruned while this waited for it is missing.
    """
    ids = sorted(services)
    await connection.execute(MAKE_ROWS, (ids, [services[one] for one in ids]))
    cursor = await connection.execute(LOCK_ROWS, (ids,))
    rows = [
        Row(*(*columns, orjson.loads(reported), orjson.loads(checks)))
        for *columns, reported, checks in await cursor.fetchall()
    ]
    return {row.id: row for row in rows}


async def store_rows(connection: Connection, rows: Iterable[Row]) -> None:
    """Write rows that :func:`lock_rows` holds."""
    written = [
        (
            *(row.id, row.boot, row.started_at, row.seq, row.reported_at, row.heard_at),
            *(row.applied_epoch, row.applied_version, row.applied_at, row.config_version),
            *(orjson.dumps(row.reported).decode(), orjson.dumps(row.checks).decode()),
        )
        for row in rows
    ]
    if written:
        await connection.execute(STORE_ROWS, _columns(written, 12))


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows turned to columns, as `unnest` takes them."""
    return [[row[column] for row in rows] for column in range(width)]
