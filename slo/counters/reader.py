"""Look-ups of cumulative counters at the end of minutes.

All minute rows of an SLI are later than its packed hours. The counters at a minute are read from
the last minute row at or before it, else from the last packed hour at or before it. Before an SLI's
first row they are zero.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal

from controlplane.core.sql import fetch_all
from slo.arithmetic.timeslices import count_slices
from slo.arithmetic.windows import ZERO, CounterValues
from slo.models import CounterHour, Sli, Slo

from . import postgres_arrays

ORIGIN = -1
"""Hour number of the row that holds the counters at the end of deleted history."""
# Each look-up is an index step or two, however long the history.
_COUNTS = """
    SELECT target.sli, target.minute, coalesce(m.good, h.good, 0), coalesce(m.total, h.total, 0),
           coalesce(m.covered, h.covered, 0)
    FROM unnest(%(slis)s::bigint[], %(minutes)s::int[]) AS target (sli, minute)
    LEFT JOIN LATERAL (
        SELECT good, total, covered FROM slo_minute
        WHERE sli_id = target.sli AND minute <= target.minute ORDER BY minute DESC LIMIT 1
    ) m ON true
    LEFT JOIN LATERAL (
        SELECT good[place] AS good, total[place] AS total, covered[place] AS covered FROM (
            SELECT good, total, covered,
                   CASE WHEN hour = target.minute / 60 THEN target.minute %% 60 + 1 ELSE 60 END
                       AS place
            FROM slo_hour WHERE sli_id = target.sli AND hour <= target.minute / 60
            ORDER BY hour DESC LIMIT 1
        ) packed WHERE m.good IS NULL
    ) h ON true
"""
# One statement, so that no hour is packed and no sample inserted in between.
_HISTORY = """
    SELECT hour * 60, good, total, covered FROM slo_hour
    WHERE sli_id = %(sli)s AND hour <= %(last)s / 60 AND hour >= coalesce(
        (SELECT max(hour) FROM slo_hour WHERE sli_id = %(sli)s AND hour <= %(first)s / 60), 0)
    UNION ALL
    SELECT minute, ARRAY[good], ARRAY[total], ARRAY[covered] FROM slo_minute
    WHERE sli_id = %(sli)s AND minute <= %(last)s AND minute >= coalesce(
        (SELECT max(minute) FROM slo_minute WHERE sli_id = %(sli)s AND minute <= %(first)s), 0)
    ORDER BY 1
"""


@dataclass(frozen=True)
class CounterHistory:
    """The counters of an SLI at ascending `minutes`; `first` is the minute of its first row."""

    minutes: list[int]
    counts: list[CounterValues]
    first: int | None

    def counts_at(self, minute: int) -> CounterValues:
        """Return the counters at the end of this minute, which must be within the loaded span."""
        place = bisect_right(self.minutes, minute)
        return self.counts[place - 1] if place else ZERO

    def by_slices(self, slice_target: Decimal | None) -> "CounterHistory":
        """Return the history with minutes counted instead of events; unchanged without a target."""
        if slice_target is None:
            return self
        return CounterHistory(self.minutes, count_slices(self.counts, slice_target), self.first)


def load_counts(
    sli_minutes: Mapping[int, Collection[int]],
    slice_targets: Mapping[int, Decimal | None] | None = None,
) -> dict[tuple[int, int], CounterValues]:
    """Return the counters of SLIs at the given minutes, by (SLI id, minute). Makes one query.

    SLIs with a slice target count slices, from the first of their minutes; each takes a query more.
    """
    targets = {sli: one for sli, one in (slice_targets or {}).items() if one is not None}
    plain = {sli: minutes for sli, minutes in sli_minutes.items() if sli not in targets}
    found = _load_plain_counts(plain)
    for sli, minutes in sli_minutes.items():
        if sli in targets and minutes:
            history = load_history(sli, min(minutes), max(minutes)).by_slices(targets[sli])
            found |= {(sli, minute): history.counts_at(minute) for minute in minutes}
    return found


def _load_plain_counts(
    sli_minutes: Mapping[int, Collection[int]],
) -> dict[tuple[int, int], CounterValues]:
    pairs = [(sli, minute) for sli, minutes in sli_minutes.items() for minute in minutes]
    if not pairs:
        return {}
    slis, minutes = zip(*pairs, strict=True)
    arguments = postgres_arrays.number_arrays(slis=slis, minutes=minutes)
    return {
        (sli, minute): CounterValues(good, total, covered)
        for sli, minute, good, total, covered in fetch_all(_COUNTS, arguments)
    }


def load_history(sli_id: int, first_minute: int, last_minute: int) -> CounterHistory:
    """Return the counters of an SLI at each minute from `first_minute` to `last_minute`."""
    arguments = {"sli": sli_id, "first": first_minute, "last": last_minute}
    minutes, known = [first_minute], [ZERO]
    for start, *columns in fetch_all(_HISTORY, arguments):
        for minute, row in enumerate(zip(*columns, strict=True), start):
            if minute <= first_minute:
                known[0] = CounterValues(*row)
            elif minute <= last_minute:
                minutes.append(minute)
                known.append(CounterValues(*row))
    return CounterHistory(minutes, known, load_first_minute(sli_id))


def load_first_minute(sli_id: int) -> int | None:
    return Sli.objects.filter(pk=sli_id).values_list("first", flat=True).first()


def retained_from(sli_id: int) -> int | None:
    """Return the first minute of an SLI's history if older parts of it were deleted, else None."""
    is_forgotten = CounterHour.objects.filter(sli=sli_id, hour=ORIGIN).exists()
    return load_first_minute(sli_id) if is_forgotten else None


def get_or_create_sli(slo: Slo) -> Sli:
    sli, _ = Sli.objects.get_or_create(slo=slo, defaults={"created_at": slo.created_at})
    return sli
