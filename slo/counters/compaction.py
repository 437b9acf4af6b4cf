"""Compaction: packs old minute rows into one row per hour, without loss."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.sql import execute, fetch_all
from slo.arithmetic.minutes import last_ended
from slo.arithmetic.windows import ZERO, CounterValues

from . import hours, postgres_arrays, writer
from .hours import MINUTES_AN_HOUR

COMPACTED_AFTER = timedelta(days=3)
MAX_SLIS = 100
"""Most SLIs to compact in a transaction, which locks them; of each, at most a day of rows."""
MAX_HOURS = 24
# The hour of the oldest minute row of each SLI, if that is old enough.
_DUE = """
    SELECT s.id, m.minute / 60 FROM slo_sli s
    CROSS JOIN LATERAL (
        SELECT minute FROM slo_minute WHERE sli_id = s.id ORDER BY minute LIMIT 1
    ) m
    WHERE s.id > %(after)s AND m.minute < %(before)s ORDER BY s.id LIMIT %(most)s
"""
_ROWS = """
    SELECT target.sli, m.minute, m.good, m.total, m.covered
    FROM unnest(%(slis)s::bigint[], %(until)s::int[]) AS target (sli, until)
    JOIN slo_minute m ON m.sli_id = target.sli AND m.minute < target.until
    ORDER BY m.sli_id, m.minute
"""
_LAST = """
    SELECT target.sli, h.good[60], h.total[60], h.covered[60]
    FROM unnest(%(slis)s::bigint[]) AS target (sli)
    CROSS JOIN LATERAL (
        SELECT good, total, covered FROM slo_hour WHERE sli_id = target.sli
        ORDER BY hour DESC LIMIT 1
    ) h
"""
_DELETE = """
    DELETE FROM slo_minute m
    USING unnest(%(slis)s::bigint[], %(until)s::int[]) AS target (sli, until)
    WHERE m.sli_id = target.sli AND m.minute < target.until
"""


def compact_minutes(now: datetime, *, most: int) -> int:
    """Pack about `most` minute rows that are over 3 days old; return how many were packed."""
    before = last_ended(now - COMPACTED_AFTER) // MINUTES_AN_HOUR * MINUTES_AN_HOUR
    packed = after = 0
    while packed < most:
        due = dict(fetch_all(_DUE, {"after": after, "before": before, "most": MAX_SLIS}))
        if not due:
            if not after:
                break
            after = 0  # Start over: only some hours of each SLI were packed.
            continue
        until = {sli: min(before, (hour + MAX_HOURS) * 60) for sli, hour in due.items()}
        packed += _compact_slis(until)
        after = max(due)
    return packed


@transaction.atomic
def _compact_slis(until: Mapping[int, int]) -> int:
    writer.lock_slis(until.keys())
    arguments = postgres_arrays.number_arrays(slis=until, until=until.values())
    last = {row[0]: CounterValues(*row[1:]) for row in fetch_all(_LAST, arguments)}
    rows: dict[int, dict[int, CounterValues]] = {}
    for sli, minute, *columns in fetch_all(_ROWS, arguments):
        rows.setdefault(sli, {})[minute] = CounterValues(*columns)
    written = [
        hour
        for sli, minutes in rows.items()
        for hour in _hour_rows(sli, minutes, last.get(sli, ZERO))
    ]
    hours.save_hours(written)
    return execute(_DELETE, arguments)


def _hour_rows(
    sli: int, minutes: Mapping[int, CounterValues], before: CounterValues
) -> Sequence[dict[str, Any]]:
    result = []
    for hour in sorted({minute // MINUTES_AN_HOUR for minute in minutes}):
        start = hour * MINUTES_AN_HOUR
        counts = []
        for minute in range(start, start + MINUTES_AN_HOUR):
            before = minutes.get(minute, before)
            counts.append(before)
        result.append(hours.hour_row(sli, hour, counts))
    return result
