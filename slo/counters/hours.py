"""Hours that are past for long: what is added to them, once they are packed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from django.db import connection

from slo.arithmetic.counts import NOTHING, Count

from . import postgres_arrays
from .minute_increments import Tally

MINUTES_AN_HOUR = 60
AT_ONCE = 500
# The last hour before the first that is touched, and all from there on.
_HOURS = """
    SELECT asked.sli, h.hour, h.good, h.total, h.covered
    FROM unnest(%(slis)s::bigint[], %(hours)s::int[]) AS asked (sli, hour)
    CROSS JOIN LATERAL (
        SELECT hour, good, total, covered FROM slo_hour
        WHERE sli_id = asked.sli AND hour >= coalesce(
            (SELECT max(hour) FROM slo_hour WHERE sli_id = asked.sli AND hour < asked.hour),
            asked.hour)
    ) h ORDER BY asked.sli, h.hour
"""
_STORE = """
    INSERT INTO slo_hour (sli_id, hour, good, total, covered)
    SELECT new.* FROM json_to_recordset(%s::json)
         AS new (sli bigint, hour int, good float8[], total float8[], covered int[])
    ON CONFLICT (sli_id, hour) DO UPDATE
    SET good = excluded.good, total = excluded.total, covered = excluded.covered
"""


class Carried(NamedTuple):
    """What stands at the end of an SLI's last packed hour: what `was` there, and `by` how much that
    and all after it grew. `hour` is null if nothing is packed."""

    hour: int | None
    was: Count
    by: Count


NONE = Carried(None, NOTHING, NOTHING)


def end_of(carried: Carried) -> int:
    """The first minute after what is packed."""
    return 0 if carried.hour is None else (carried.hour + 1) * MINUTES_AN_HOUR


def add(tallies: Mapping[int, Tally]) -> dict[int, Carried]:
    """Add to the packed hours of SLIs (by id), which are locked, what belongs there; returns what
    follows for the minutes after them. What comes after the last hour is left alone."""
    first = {sli: tally.minutes()[0] // MINUTES_AN_HOUR for sli, tally in tallies.items()}
    found: dict[int, dict[int, list[list[Any]]]] = {}
    asked = {
        "slis": postgres_arrays.numbers(first),
        "hours": postgres_arrays.numbers(first.values()),
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, asked)
        for sli, hour, *columns in cursor.fetchall():
            found.setdefault(sli, {})[hour] = columns
    written: list[dict[str, Any]] = []
    carried = {}
    for sli, hours in found.items():
        carried[sli] = _add_one(sli, hours, first[sli], tallies[sli], written)
    store(written)
    return carried


def store(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write packed hours: `sli`, `hour`, and sixty each of `good`, `total` and `covered`."""
    with connection.cursor() as cursor:
        for start in range(0, len(rows), AT_ONCE):
            cursor.execute(_STORE, [orjson.dumps(rows[start : start + AT_ONCE]).decode()])


def row_of(sli: int, hour: int, counts: Sequence[Count]) -> dict[str, Any]:
    """The counters at the end of each of an hour's sixty minutes, as :func:`store` takes them."""
    good, total, covered = map(list, zip(*counts, strict=True))
    return {"sli": sli, "hour": hour, "good": good, "total": total, "covered": covered}


def _add_one(
    sli: int,
    hours: Mapping[int, list[list[Any]]],
    first: int,
    tally: Tally,
    written: list[dict[str, Any]],
) -> Carried:
    newest = max(hours)
    was, by = NOTHING, NOTHING
    touched = {minute // MINUTES_AN_HOUR for minute in tally.minutes()}
    for hour in sorted(touched.union(hours)):
        if hour > newest:
            break
        known = hours.get(hour)
        rows = [Count(*row) for row in zip(*known, strict=True)] if known else [was] * 60
        if hour >= first:
            moved = list(_moved(hour, rows, was, by, tally))
            by = moved[-1] - rows[-1]
            if moved != rows:
                written.append(row_of(sli, hour, moved))
        was = rows[-1]
    return Carried(newest, was, by)


def _moved(
    hour: int, rows: Sequence[Count], before: Count, by: Count, tally: Tally
) -> Iterator[Count]:
    """The rows of an hour after what is added to it, `by` having been added before it."""
    good, total, covered = by
    for minute, row in enumerate(rows, hour * MINUTES_AN_HOUR):
        more_good, more = tally.counts.get(minute, (0, 0))
        good, total = good + more_good, total + more
        covered += minute in tally.covered and row.covered == before.covered
        yield Count(row.good + good, row.total + total, row.covered + covered)
        before = row
