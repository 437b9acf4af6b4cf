"""Counts of events over a window, without excluded spans, from cumulative counters. Pure."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from .minutes import window_minutes
from .objective import MinuteSpan, Objective


class CounterValues(NamedTuple):
    """Numbers of good and of all events, and of minutes with samples (`covered`), of an SLI.

    They count from the SLI's start, or, as the difference of two values, in a span.
    """

    good: float
    total: float
    covered: int

    def __sub__(self, earlier: "CounterValues") -> "CounterValues":
        return CounterValues(
            self.good - earlier.good, self.total - earlier.total, self.covered - earlier.covered
        )

    @property
    def bad(self) -> float:
        return self.total - self.good


ZERO = CounterValues(0.0, 0.0, 0)


MIN_COVERED = 5
"""Fewest covered minutes of a known window; a tenth of the window if that is more."""

RECENT_MINUTES = 5
"""Minutes without samples after which nothing is known about the present."""

CounterLookup = Callable[[int], CounterValues]
Exact = int | Fraction


class WindowCounts(NamedTuple):
    """Exact counts of events in a window of `minutes`, of which `covered` have samples."""

    bad: Exact
    total: Exact
    covered: int
    minutes: int

    def is_known(self, min_events: int) -> bool:
        """Return True if the window has enough events and covered minutes."""
        return (
            self.total > 0
            and self.total >= min_events
            and self.covered >= min_covered(self.minutes)
        )

    @property
    def coverage(self) -> float:
        return round(self.covered / self.minutes, 6)


def measure_window(
    minutes: int, at: int, counts: CounterLookup, excluded: Sequence[MinuteSpan]
) -> WindowCounts:
    """Return the counts of events in the `minutes` up to the end of minute `at`.

    Events in `excluded` spans do not count; the spans must not overlap (see :func:`merge_spans`).
    """
    start = at - minutes
    bad, total, covered = _count_between(start, at, counts)
    if not excluded:
        return WindowCounts(bad if bad > 0 else 0, total, covered, minutes)
    for begins, ends in excluded:
        if begins < at and ends > start:
            less = _count_between(max(begins, start), min(ends, at), counts)
            bad, total, covered = bad - less[0], total - less[1], covered - less[2]
    return WindowCounts(max(bad, 0), max(total, 0), max(covered, 0), minutes)


def has_recent_samples(at: int, counts: CounterLookup) -> bool:
    """Return True if samples cover any of the last minutes up to `at`, excluded or not."""
    return counts(at).covered > counts(at - RECENT_MINUTES).covered


@lru_cache(maxsize=4096)
def min_covered(minutes: int) -> int:
    return min(minutes, max(MIN_COVERED, -(-minutes // 10)))


def merge_spans(spans: Iterable[MinuteSpan]) -> tuple[MinuteSpan, ...]:
    """Return sorted spans of the same minutes, with overlapping and adjacent spans merged."""
    found: list[MinuteSpan] = []
    for begins, ends in sorted(spans):
        if ends <= begins:
            continue
        if found and begins <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], ends))
        else:
            found.append((begins, ends))
    return tuple(found)


def needed_minutes(objective: Objective, at: int) -> set[int]:
    """Return the minutes whose counters are needed to evaluate an objective at a minute."""
    begin = at - objective.period
    needed = {at, begin, at - RECENT_MINUTES}
    needed.update(at - window_minutes(one) for one in objective.windows)
    for begins, ends in merge_spans(objective.excluded):
        if begins < at and ends > begin:
            needed |= {max(begins, begin), min(ends, at)}
    return needed


def _count_between(start: int, end: int, counts: CounterLookup) -> tuple[Exact, Exact, int]:
    earlier, later = counts(start), counts(end)
    total = _subtract_exactly(later.total, earlier.total)
    bad = total - _subtract_exactly(later.good, earlier.good)
    return bad, total, later.covered - earlier.covered


def _subtract_exactly(later: float, earlier: float) -> Exact:
    if later.is_integer() and earlier.is_integer():
        return int(later) - int(earlier)
    return Fraction(later) - Fraction(earlier)
