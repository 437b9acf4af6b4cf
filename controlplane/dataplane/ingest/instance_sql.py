"""SQL statements of the instance ledger, for batches of notes (sightings of an instance).

Every statement locks instances in id order to avoid deadlocks between processes. The newest note
wins, regardless of the order of writes.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import structlog

from controlplane.dataplane.postgres.database import Connection

from .instance_rows import InstanceRow, SloEvents

DOCUMENTS_AT_ONCE = 10
"""Rows read or written before other tasks run; a row's documents may have 200 KB each."""
COUNT_SECONDS = 1.0
"""Shortest interval between two counts of the instances."""
log = structlog.get_logger(__name__)

# A poll without a version resets the version, unless the instance has sent a report lately.
NEWER = """EXCLUDED.applied_at IS NOT NULL
    AND (i.applied_at IS NULL OR EXCLUDED.applied_at > i.applied_at)
    AND (EXCLUDED.applied_version IS NOT NULL OR i.reported_at IS NULL
         OR i.reported_at < EXCLUDED.applied_at - interval '30 seconds')"""
UPSERT_PRESENCE = f"""
    INSERT INTO core_instance AS i (id, service, heard_at, first_heard_at, applied_epoch,
                                    applied_version, applied_at, relay, reported, checks)
    SELECT id, service, heard_at, heard_at, epoch, version, applied_at, relay, '{{}}', '{{}}'
    FROM json_to_recordset(%s::json)
         AS new (id text, service text, heard_at timestamptz, epoch uuid, version bigint,
                  applied_at timestamptz, relay text)
    ORDER BY id COLLATE "C"
    ON CONFLICT (id) DO UPDATE SET
        heard_at = greatest(i.heard_at, EXCLUDED.heard_at),
        first_heard_at = least(i.first_heard_at, EXCLUDED.first_heard_at),
        applied_epoch = CASE WHEN {NEWER} THEN EXCLUDED.applied_epoch ELSE i.applied_epoch END,
        applied_version = CASE WHEN {NEWER} THEN EXCLUDED.applied_version
                               ELSE i.applied_version END,
        applied_at = CASE WHEN {NEWER} THEN EXCLUDED.applied_at ELSE i.applied_at END,
        relay = CASE WHEN EXCLUDED.heard_at < i.heard_at THEN i.relay ELSE EXCLUDED.relay END
    WHERE i.heard_at IS NULL OR EXCLUDED.heard_at > i.heard_at OR ({NEWER})
       OR i.first_heard_at IS NULL OR EXCLUDED.first_heard_at < i.first_heard_at
"""  # noqa: S608
UPSERT_ACKS = """
    INSERT INTO core_acknowledgement AS a (epoch, version, instance, acknowledged_at)
    SELECT new.*
    FROM json_to_recordset(%s::json)
         AS new (epoch uuid, version bigint, instance text, at timestamptz)
    JOIN switches_publication p ON new.epoch = p.epoch AND new.version <= p.version
    ORDER BY instance COLLATE "C", new.epoch, new.version
    ON CONFLICT (epoch, version, instance) DO UPDATE SET acknowledged_at = EXCLUDED.acknowledged_at
    WHERE EXCLUDED.acknowledged_at < a.acknowledged_at
"""
# A conflict locks the row without writing to it.
LOCK_ROWS = """
    INSERT INTO core_instance AS i (id, service, reported, checks)
    SELECT id, service, '{}', '{}' FROM unnest(%s::text[], %s::text[]) AS named (id, service)
    ORDER BY id COLLATE "C"
    ON CONFLICT (id) DO UPDATE SET service = i.service WHERE false
"""
READ_ROWS = """
    SELECT id, service, boot, started_at, seq, reported_at, heard_at, applied_epoch,
           applied_version, applied_at, config_version, contested_at, stopped_at, relay,
           reported::text, checks::text, resilience::text
    FROM core_instance WHERE id = ANY(%s)
"""
STORE_ROW = """
    UPDATE core_instance SET
        boot = %s, started_at = %s, seq = %s, reported_at = %s, heard_at = %s::timestamptz,
        contested_at = %s, stopped_at = %s, relay = %s,
        first_heard_at = coalesce(first_heard_at, %s::timestamptz),
        applied_epoch = %s, applied_version = %s, applied_at = %s, config_version = %s,
        reported = coalesce(%s::jsonb, reported), checks = coalesce(%s::jsonb, checks),
        resilience = coalesce(%s::jsonb, resilience)
    WHERE id = %s
"""
# One statement writes counts for gates (core_eventcount) and for the minutes of SLOs
# (slo_reported). An SLO's service is looked up only for tokens that are limited to services. Their
# counts of an unknown SLO aren't added to minutes: a new SLO of another service may get that name.
WRITE_EVENTS = """
    WITH reported AS MATERIALIZED (
        SELECT *, CASE WHEN services <> '{}' THEN (
            SELECT service FROM slo_slo WHERE name = slo AND removed_at IS NULL
        ) END AS owner
        FROM json_to_recordset(%s::json)
             AS reported (slo text, instance text, began_at timestamptz, ended_at timestamptz,
                      good bigint, total bigint, services text[])
    ), counted AS (
        SELECT * FROM reported WHERE owner IS NULL OR owner = ANY(services)
    ), added AS (
        INSERT INTO slo_reported (slo, instance, began_at, ended_at, good, total)
        SELECT slo, instance, began_at, ended_at, good, total FROM counted
        WHERE services = '{}' OR owner IS NOT NULL
    ), noted AS (
        INSERT INTO core_eventcount (slo, instance, began_at, ended_at, good, total)
        SELECT slo, instance, began_at, ended_at, good, total FROM counted
    )
    SELECT instance, slo FROM reported WHERE services <> '{}' AND owner <> ALL(services)
"""
COUNT_INSTANCES = "SELECT count(*) FROM (SELECT FROM core_instance LIMIT %s) AS those"
FIND_EXISTING = "SELECT id FROM core_instance WHERE id = ANY(%s)"


class Presence(NamedTuple):
    """An instance's latest poll, and the snapshot version that it applied at `applied_at`.

    If no version is known, `epoch`, `version` and `applied_at` are None. If the instance has
    restarted, `applied_at` is the time of the restart, and the other two are None. `relay` is the
    name of the relay that was polled, "" for a data plane.
    """

    id: str
    service: str
    heard_at: datetime
    epoch: UUID | None
    version: int | None
    applied_at: datetime | None
    relay: str = ""


class Ack(NamedTuple):
    epoch: UUID
    version: int
    instance: str
    at: datetime


async def write_presence(
    connection: Connection, presences: Sequence[Presence], acks: Sequence[Ack]
) -> None:
    """Write presences and acknowledgements in one transaction."""
    async with connection.transaction():
        while presences:  # A statement can write only one presence per instance.
            later, at_once = list[Presence](), dict[str, Presence]()
            for each in presences:
                if at_once.setdefault(each.id, each) is not each:
                    later.append(each)
            await connection.execute(UPSERT_PRESENCE, (_to_json([*at_once.values()]),))
            presences = later
        await write_acks(connection, acks)


async def write_acks(connection: Connection, acks: Sequence[Ack]) -> None:
    """Write the earliest acknowledgement per instance and published version."""
    earliest: dict[tuple[UUID, int, str], Ack] = {}
    for ack in acks:
        known = earliest.setdefault(ack[:3], ack)
        if ack.at < known.at:
            earliest[ack[:3]] = ack
    if earliest:
        await connection.execute(UPSERT_ACKS, (_to_json([*earliest.values()]),))


async def write_events(
    connection: Connection, events: Sequence[SloEvents]
) -> list[tuple[str, str]]:
    """Write SLO counts of instances; return the refused ones as (instance, SLO).

    Counts are refused if their token is limited to other services than the SLO's. Call this in the
    transaction that stores the rows from which the counts were computed; otherwise a repeated
    report would add them twice.
    """
    if not events:
        return []
    cursor = await connection.execute(WRITE_EVENTS, (_to_json(events),))
    return [(instance, slo) for instance, slo in await cursor.fetchall()]


async def lock_rows(connection: Connection, services: Mapping[str, str]) -> dict[str, InstanceRow]:
    """Lock the rows of instances and return them by instance id; create missing rows.

    `services` maps the id of each instance to its service.
    """
    ids = sorted(services)
    await connection.execute(LOCK_ROWS, (ids, [services[one] for one in ids]))
    cursor = await connection.execute(READ_ROWS, (ids,))
    rows: dict[str, InstanceRow] = {}
    while some := await cursor.fetchmany(DOCUMENTS_AT_ONCE):
        for *columns, reported, checks, resilience in some:
            documents = map(orjson.loads, (reported, checks, resilience))
            row = InstanceRow(*columns, *documents)
            rows[row.id] = row
        await asyncio.sleep(0)
    return rows


async def store_rows(
    connection: Connection, before: Mapping[str, InstanceRow], rows: Sequence[InstanceRow]
) -> None:
    """Write rows locked by :func:`lock_rows`; unchanged JSON documents are skipped."""
    for start in range(0, len(rows), DOCUMENTS_AT_ONCE):
        few = rows[start : start + DOCUMENTS_AT_ONCE]
        columns = [
            (
                *(row.boot, row.started_at, row.seq, row.reported_at, row.heard_at),
                *(row.contested_at, row.stopped_at, row.relay, row.heard_at),
                *(row.applied_epoch, row.applied_version, row.applied_at, row.config_version),
                _dump_if_changed(before[row.id].reported, row.reported),
                _dump_if_changed(before[row.id].checks, row.checks),
                _dump_if_changed(before[row.id].resilience, row.resilience),
                row.id,
            )
            for row in few
        ]
        await connection.cursor().executemany(STORE_ROW, columns)
        await asyncio.sleep(0)


class InstanceQuota:
    """A limit of about `most` instances in the database, because any poller can invent names."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = 0
        self._counted_at = float("-inf")
        self._is_logged = False

    async def admit(self, connection: Connection, names: Set[str]) -> Set[str]:
        """Return the names that may be written: all, or at the limit only those that exist."""
        now = time.monotonic()
        if self._left < len(names) and now - self._counted_at >= COUNT_SECONDS:
            cursor = await connection.execute(COUNT_INSTANCES, (self._most,))
            self._left = self._most - int((await cursor.fetchall())[0][0])
            self._counted_at = now
            self._is_logged = self._is_logged and self._left < len(names)
        if self._left >= len(names):
            self._left -= len(names)
            return names
        cursor = await connection.execute(FIND_EXISTING, (sorted(names),))
        known = {row[0] for row in await cursor.fetchall()}
        if len(known) < len(names) and not self._is_logged:
            log.warning("ledger.instances_full", most=self._most, names=len(names) - len(known))
            self._is_logged = True
        return known


def _dump_if_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    return None if now == before else orjson.dumps(now).decode()


def _to_json(rows: Sequence[Presence] | Sequence[Ack] | Sequence[SloEvents]) -> str:
    """Return rows as one JSON text, ten times cheaper than thousands of parameters."""
    return orjson.dumps([row._asdict() for row in rows]).decode()
