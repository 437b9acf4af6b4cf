"""SQL statements for breaker changes, one per kind of change and batch.

Dependencies are referred to by id (:mod:`.dependency_discovery`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
from psycopg import errors

from breakers.names import split_name
from controlplane.core.instances.exports import TRIPPED
from controlplane.dataplane.postgres.database import Connection

from .breaker_reports import BreakerRow, TransitionRow
from .report_fields import COUNTERS

FIND_IDS = """
    SELECT d.caller || '->' || d.callee, d.id
    FROM unnest(%s::text[], %s::text[]) AS named (caller, callee)
    JOIN breakers_dependency d ON d.caller = named.caller AND d.callee = named.callee
"""
COUNT_DISCOVERED = """
    SELECT count(*) FROM (
        SELECT FROM breakers_dependency WHERE document = '{}' AND removed_at IS NULL LIMIT %s
    ) AS those
"""
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '50ms'"
CREATE_DEPENDENCIES = """
    INSERT INTO breakers_dependency (caller, callee, protocol, criticality, mode, owner,
                                     runbook_url, notes, managed_by, document, on_outage, version,
                                     registered_at, changed_at)
    SELECT caller, callee, '', 'medium', 'sync', '', '', '', 'caller', '{}', '{}', 0,
           clock_timestamp(), clock_timestamp()
    FROM unnest(%s::text[], %s::text[]) AS named (caller, callee)
    ORDER BY caller COLLATE "C", callee COLLATE "C"
    ON CONFLICT (caller, callee) DO NOTHING
"""
UPSERT_STATES = """
    INSERT INTO breakers_breakerstate (dependency_id, instance, boot, state, mode, since,
                                       failure_rate, slow_rate, calls, changed_at)
    SELECT dependency, instance, boot, state, mode, since, failure_rate, slow_rate, calls,
           changed_at
    FROM json_to_recordset(%s::json)
         AS new (dependency bigint, instance text, boot uuid, state text, mode text,
                  since timestamptz, failure_rate double precision, slow_rate double precision,
                  calls bigint, changed_at timestamptz)
    ORDER BY instance COLLATE "C", dependency
    ON CONFLICT (dependency_id, instance) DO UPDATE SET
        boot = EXCLUDED.boot, state = EXCLUDED.state, mode = EXCLUDED.mode,
        since = EXCLUDED.since, failure_rate = EXCLUDED.failure_rate,
        slow_rate = EXCLUDED.slow_rate, calls = EXCLUDED.calls, changed_at = EXCLUDED.changed_at
"""
DELETE_FORMER_BOOTS = """
    DELETE FROM breakers_breakerstate s
    USING unnest(%s::text[], %s::uuid[]) AS begun (instance, boot), breakers_dependency d
    WHERE s.instance = begun.instance AND s.boot <> begun.boot AND d.id = s.dependency_id
    RETURNING d.caller || '->' || d.callee
"""
DELETE_REMOVED = """
    DELETE FROM breakers_breakerstate s
    USING unnest(%s::text[], %s::text[]) AS gone (name, instance), breakers_dependency d
    WHERE s.instance = gone.instance AND d.id = s.dependency_id
      AND d.caller || '->' || d.callee = gone.name
    RETURNING gone.name
"""
APPEND_TRANSITIONS = f"""
    INSERT INTO breakers_transition (dependency_id, boot, n, instance, from_state, to_state, at,
                                     cause, received_at)
    SELECT dependency, boot, n, instance, from_state, to_state, at, cause, received_at
    FROM json_to_recordset(%s::json)
         AS new (dependency bigint, boot uuid, n bigint, instance text, from_state text,
                  to_state text, at timestamptz, cause text, received_at timestamptz)
    ORDER BY dependency, boot, n
    ON CONFLICT (dependency_id, boot, n) DO NOTHING
    RETURNING dependency_id, {TRIPPED}
"""  # noqa: S608
_NAMES = ", ".join(COUNTERS)
_TYPED = ", ".join(f"{name} bigint" for name in COUNTERS)
# One overflowing number must not prevent all others from being written.
MAX_TOTAL = 2**62
_SUMS = ", ".join(f"{name} = least(m.{name}, {MAX_TOTAL}) + EXCLUDED.{name}" for name in COUNTERS)
ADD_MINUTES = f"""
    INSERT INTO breakers_minute AS m (dependency_id, minute, {_NAMES})
    SELECT dependency, minute, {_NAMES}
    FROM json_to_recordset(%s::json)
         AS counted (dependency bigint, minute timestamptz, {_TYPED})
    WHERE EXISTS (SELECT FROM breakers_dependency d WHERE d.id = dependency)
    ORDER BY dependency, minute
    ON CONFLICT (dependency_id, minute) DO UPDATE SET {_SUMS}
"""  # noqa: S608
ADD_TOTALS = f"""
    UPDATE breakers_dependency d SET
        trips_total = least(d.trips_total, {MAX_TOTAL}) + counted.trips,
        fallback_total = least(d.fallback_total, {MAX_TOTAL}) + counted.fallbacks
    FROM json_to_recordset(%s::json) AS counted (id bigint, trips bigint, fallbacks bigint)
    WHERE d.id = counted.id AND d.id IN (
        SELECT id FROM breakers_dependency WHERE id = ANY(%s)
        ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    )
    RETURNING d.id
"""  # noqa: S608

Ids = Mapping[str, int]


async def create_dependencies(connection: Connection, names: Sequence[str]) -> bool:
    """Create the missing dependencies; return False if another transaction blocks this.

    Another transaction may be registering one of them. Waiting for it would delay all reports, so
    no dependency is created then.
    """
    try:
        async with connection.transaction():
            await connection.execute(LOCK_TIMEOUT)
            await connection.execute(CREATE_DEPENDENCIES, split_names(names))
    except (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected):
        return False
    return True


async def write_states(connection: Connection, states: Iterable[BreakerRow], ids: Ids) -> None:
    if rows := _to_rows(states, ids):
        await connection.execute(UPSERT_STATES, (orjson.dumps(rows).decode(),))


async def delete_former_boots(connection: Connection, begun: Mapping[str, UUID]) -> set[str]:
    """Delete breaker states that former boots of instances reported.

    `begun` maps each instance to its current boot. Return the names of the dependencies concerned.
    """
    if not begun:
        return set()
    cursor = await connection.execute(DELETE_FORMER_BOOTS, ([*begun], [*begun.values()]))
    return {row[0] for row in await cursor.fetchall()}


async def delete_removed(connection: Connection, gone: Collection[tuple[str, str]]) -> set[str]:
    """Delete breakers, given as (dependency, instance); return the names of their dependencies."""
    if not gone:
        return set()
    columns = [name for name, _ in gone], [instance for _, instance in gone]
    cursor = await connection.execute(DELETE_REMOVED, columns)
    return {row[0] for row in await cursor.fetchall()}


async def write_transitions(
    connection: Connection, transitions: Iterable[TransitionRow], ids: Ids
) -> list[tuple[int, bool]]:
    """Insert new transitions; return (dependency id, True if the breaker tripped) for each."""
    rows = _to_rows(transitions, ids)
    if not rows:
        return []
    cursor = await connection.execute(APPEND_TRANSITIONS, (orjson.dumps(rows).decode(),))
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def add_minutes(
    connection: Connection, sums: Mapping[tuple[int, int], Sequence[int]]
) -> None:
    """Add counts to the stored sums of each dependency and minute.

    `sums` maps (dependency id, minute since 1970) to counts in the order of `COUNTERS`.
    """
    rows = [
        {
            "dependency": dependency,
            "minute": datetime.fromtimestamp(minute * 60, UTC),
            **dict(zip(COUNTERS, counts, strict=True)),
        }
        for (dependency, minute), counts in sums.items()
    ]
    await connection.execute(ADD_MINUTES, (orjson.dumps(rows).decode(),))


async def add_totals(connection: Connection, sums: Mapping[int, Sequence[int]]) -> set[int]:
    """Add (trips, fallbacks) to the totals of dependencies, by id; return the ids of updated rows.

    Rows that another transaction has locked are skipped.
    """
    rows = [{"id": id_, "trips": one[0], "fallbacks": one[1]} for id_, one in sums.items()]
    cursor = await connection.execute(ADD_TOTALS, (orjson.dumps(rows).decode(), [*sums]))
    return {row[0] for row in await cursor.fetchall()}


def _to_rows(
    changes: Iterable[BreakerRow] | Iterable[TransitionRow], ids: Ids
) -> list[dict[str, Any]]:
    return [
        {**one._asdict(), "dependency": ids[one.dependency]}
        for one in changes
        if one.dependency in ids
    ]


def split_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split dependency names (`caller->callee`) into callers and callees; skip invalid names."""
    pairs = sorted(pair for name in names if (pair := split_name(name)) is not None)
    return [caller for caller, _ in pairs], [callee for _, callee in pairs]
