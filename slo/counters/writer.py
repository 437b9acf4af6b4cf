"""Writer of the minute counters, which locks SLIs in the order of their ids to avoid deadlocks.

Rows are cumulative, so an increment in one minute is added to all later rows too, in one statement.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from controlplane.core.sql import fetch_all
from slo.arithmetic.increments import MinuteIncrements
from slo.arithmetic.windows import CounterValues

from . import hours, postgres_arrays

_LOCK = """
    SELECT s.id, s.first, s.last, coalesce(o.name, '')
    FROM slo_sli s LEFT JOIN slo_slo o ON o.id = s.slo_id
    WHERE s.id = ANY(%s::bigint[]) ORDER BY s.id FOR NO KEY UPDATE OF s
"""
# The last row at or before each minute, and the one before that.
_PRECEDING = """
    SELECT target.sli, target.minute, m.minute, m.good, m.total, m.covered
    FROM unnest(%(slis)s::bigint[], %(minutes)s::int[]) AS target (sli, minute)
    CROSS JOIN LATERAL (
        SELECT minute, good, total, covered FROM slo_minute
        WHERE sli_id = target.sli AND minute <= target.minute ORDER BY minute DESC LIMIT 2
    ) m
"""
_MOVE = """
    UPDATE slo_minute m
    SET good = m.good + by.good, total = m.total + by.total, covered = m.covered + by.covered
    FROM json_to_recordset(%s::json)
         AS by (sli bigint, since int, until int, good float8, total float8, covered int)
    WHERE m.sli_id = by.sli AND m.minute >= by.since AND m.minute < by.until
"""
_INSERT = """
    INSERT INTO slo_minute (sli_id, minute, good, total, covered)
    SELECT new.* FROM json_to_recordset(%s::json)
         AS new (sli bigint, minute int, good float8, total float8, covered int)
"""
_BOUNDS = """
    UPDATE slo_sli s SET first = least(s.first, new.first), last = greatest(s.last, new.last)
    FROM json_to_recordset(%s::json) AS new (sli bigint, first int, last int)
    WHERE s.id = new.sli
"""
LAST_MINUTE = 2**31 - 1


class LockedSli(NamedTuple):
    """An SLI whose row is locked, with its first and last counter minute, and its SLO's name."""

    id: int
    first: int | None
    last: int | None
    slo: str


def lock_slis(slis: Collection[int]) -> dict[int, LockedSli]:
    """Lock the SLIs with these ids until the transaction ends; return the existing ones by id."""
    rows = fetch_all(_LOCK, [postgres_arrays.number_array(sorted(slis))])
    return {row[0]: LockedSli(*row) for row in rows}


def add_increments(
    locked: Mapping[int, LockedSli], increments: Mapping[int, MinuteIncrements]
) -> None:
    """Add increments to the minute rows of locked SLIs; both mappings are by SLI id."""
    minutes_by_sli = {sli: added.minutes() for sli, added in sorted(increments.items())}
    preceding = _load_preceding(minutes_by_sli)
    early = {
        sli: increments[sli]
        for sli, minutes in minutes_by_sli.items()
        if minutes
        and locked[sli].first is not None
        and len(preceding.get((sli, minutes[0]), ())) < 2
    }
    carried = hours.add_to_hours(early)
    moves: list[dict[str, Any]] = []
    inserts: list[dict[str, Any]] = []
    bounds: list[dict[str, Any]] = []
    for sli, minutes in minutes_by_sli.items():
        if minutes:
            before = carried.get(sli, hours.CarriedCounts())
            _plan_rows(locked[sli], increments[sli], minutes, preceding, before, moves, inserts)
            first, last = locked[sli].first, locked[sli].last
            if first is None or last is None or minutes[0] < first or minutes[-1] > last:
                bounds.append({"sli": sli, "first": minutes[0], "last": minutes[-1]})
    for statement, rows in ((_MOVE, moves), (_INSERT, inserts), (_BOUNDS, bounds)):
        postgres_arrays.execute_rows(statement, rows)


MinuteRow = tuple[int, CounterValues]


def _load_preceding(
    minutes_by_sli: Mapping[int, Sequence[int]],
) -> dict[tuple[int, int], list[MinuteRow]]:
    """Return, by (SLI id, minute), the last two rows at or before that minute, later first."""
    pairs = [(sli, minute) for sli, minutes in minutes_by_sli.items() for minute in minutes]
    found: dict[tuple[int, int], list[MinuteRow]] = {}
    for start in range(0, len(pairs), postgres_arrays.BATCH_SIZE):
        some = pairs[start : start + postgres_arrays.BATCH_SIZE]
        slis, minutes = map(postgres_arrays.number_array, zip(*some, strict=True))
        rows = fetch_all(_PRECEDING, {"slis": slis, "minutes": minutes})
        for sli, minute, at, good, total, covered in rows:
            counts = CounterValues(good, total, covered)
            found.setdefault((sli, minute), []).append((at, counts))
    for some_rows in found.values():
        some_rows.sort(reverse=True)
    return found


def _plan_rows(
    sli: LockedSli,
    added: MinuteIncrements,
    minutes: Sequence[int],
    preceding: Mapping[tuple[int, int], Sequence[MinuteRow]],
    before: hours.CarriedCounts,
    moves: list[dict[str, Any]],
    inserts: list[dict[str, Any]],
) -> None:
    """Plan the changes of minute rows that add the increments `added` to one SLI; write nothing.

    New rows are appended to `inserts`, increases of existing rows to `moves`. `preceding` are the
    rows at or before `minutes`. `before` tells by how much the packed hours grew.
    """
    good, total, covered = before.by
    since = before.end_minute
    for minute in (*(each for each in minutes if each >= since), LAST_MINUTE):
        if (good or total or covered) and sli.last is not None and since <= sli.last:
            by = {"good": good, "total": total, "covered": covered}
            moves.append({"sli": sli.id, "since": since, "until": minute, **by})
        if minute == LAST_MINUTE:
            return
        known = preceding.get((sli.id, minute), ())
        at, row_counts = known[0] if known else (None, before.was)
        earlier = known[1][1] if len(known) > 1 else before.was
        more_good, more = added.counts.get(minute, (0, 0))
        is_known = at == minute and row_counts.covered > earlier.covered
        good, total = good + more_good, total + more
        covered += minute in added.covered and not is_known
        if at != minute:
            row = {"good": row_counts.good + good, "total": row_counts.total + total}
            row["covered"] = row_counts.covered + covered
            inserts.append({"sli": sli.id, "minute": minute, **row})
        since = minute if at == minute else minute + 1
