"""Packed hours, each holding sixty old minute rows, and late additions to those hours."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from controlplane.core.sql import fetch_all
from slo.arithmetic.increments import MinuteIncrements
from slo.arithmetic.windows import ZERO, CounterValues

from . import postgres_arrays

MINUTES_AN_HOUR = 60
BATCH_SIZE = 500
# The last hour before the first one to change, and all later ones.
_HOURS = """
    SELECT target.sli, h.hour, h.good, h.total, h.covered
    FROM unnest(%(slis)s::bigint[], %(hours)s::int[]) AS target (sli, hour)
    CROSS JOIN LATERAL (
        SELECT hour, good, total, covered FROM slo_hour
        WHERE sli_id = target.sli AND hour >= coalesce(
            (SELECT max(hour) FROM slo_hour WHERE sli_id = target.sli AND hour < target.hour),
            target.hour)
    ) h ORDER BY target.sli, h.hour
"""
_STORE = """
    INSERT INTO slo_hour (sli_id, hour, good, total, covered)
    SELECT new.* FROM json_to_recordset(%s::json)
         AS new (sli bigint, hour int, good float8[], total float8[], covered int[])
    ON CONFLICT (sli_id, hour) DO UPDATE
    SET good = excluded.good, total = excluded.total, covered = excluded.covered
"""


class CarriedCounts(NamedTuple):
    """The increase of an SLI's counters at the end of its last packed `hour`, by late increments.

    `was` are the counters there before, and `by` the increase. All minute rows are later, so they
    must grow by it too. `hour` is None if the SLI has no packed hours.
    """

    hour: int | None = None
    was: CounterValues = ZERO
    by: CounterValues = ZERO

    @property
    def end_minute(self) -> int:
        return 0 if self.hour is None else (self.hour + 1) * MINUTES_AN_HOUR


def add_to_hours(increments: Mapping[int, MinuteIncrements]) -> dict[int, CarriedCounts]:
    """Add increments to the packed hours of locked SLIs; both mappings are by SLI id.

    Increments after the last packed hour are left out. Return how much the counters at the end of
    that hour grew; the caller must add it to all minute rows, which are later.
    """
    first = {sli: added.minutes()[0] // MINUTES_AN_HOUR for sli, added in increments.items()}
    found: dict[int, dict[int, list[list[Any]]]] = {}
    arguments = postgres_arrays.number_arrays(slis=first, hours=first.values())
    for sli, hour, *columns in fetch_all(_HOURS, arguments):
        found.setdefault(sli, {})[hour] = columns
    written: list[dict[str, Any]] = []
    carried = {
        sli: _add_one(sli, hours, first[sli], increments[sli], written)
        for sli, hours in found.items()
    }
    save_hours(written)
    return carried


def save_hours(rows: Sequence[Mapping[str, Any]]) -> None:
    """Save packed hours: `sli`, `hour`, and sixty values each of `good`, `total` and `covered`."""
    postgres_arrays.execute_rows(_STORE, rows, BATCH_SIZE)


def hour_row(sli: int, hour: int, counts: Sequence[CounterValues]) -> dict[str, Any]:
    good, total, covered = map(list, zip(*counts, strict=True))
    return {"sli": sli, "hour": hour, "good": good, "total": total, "covered": covered}


def _add_one(
    sli: int,
    hours: Mapping[int, list[list[Any]]],
    first: int,
    added: MinuteIncrements,
    written: list[dict[str, Any]],
) -> CarriedCounts:
    newest = max(hours)
    was, by = ZERO, ZERO
    touched = {minute // MINUTES_AN_HOUR for minute in added.minutes()}
    for hour in sorted(touched.union(hours)):
        if hour > newest:
            break
        known = hours.get(hour)
        rows = [CounterValues(*row) for row in zip(*known, strict=True)] if known else [was] * 60
        if hour >= first:
            moved = list(_shifted_rows(hour, rows, was, by, added))
            by = moved[-1] - rows[-1]
            if moved != rows:
                written.append(hour_row(sli, hour, moved))
        was = rows[-1]
    return CarriedCounts(newest, was, by)


def _shifted_rows(
    hour: int,
    rows: Sequence[CounterValues],
    before: CounterValues,
    by: CounterValues,
    added: MinuteIncrements,
) -> Iterator[CounterValues]:
    """Yield the cumulative counters of a packed hour's minutes after late increments are added.

    `rows` are the counters before this, and `before` those at the hour's start. `added` are the
    late increments by minute, and `by` is the sum of those in earlier hours.
    """
    good, total, covered = by
    for minute, row in enumerate(rows, hour * MINUTES_AN_HOUR):
        more_good, more = added.counts.get(minute, (0, 0))
        good, total = good + more_good, total + more
        covered += minute in added.covered and row.covered == before.covered
        yield CounterValues(row.good + good, row.total + total, row.covered + covered)
        before = row
