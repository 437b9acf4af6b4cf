"""Counts over a window: the difference of two look-ups, without excluded spans. Pure."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from . import minutes
from .counts import CounterValues
from .objective import MinuteSpan, Objective

MIN_COVERED = 5
"""Minutes of a window that must be covered, or a tenth of it if that is more."""

CounterLookup = Callable[[int], CounterValues]
Exact = int | Fraction

window_minutes = lru_cache(maxsize=4096)(minutes.window_minutes)
"""Cached :func:`minutes.window_minutes`: the same few windows are parsed for every SLO."""


class WindowCounts(NamedTuple):
    """Exact counts of a window, and how many of its `minutes` are covered."""

    bad: Exact
    total: Exact
    covered: int
    minutes: int

    def is_known(self, min_events: int) -> bool:
        """Return whether the window has enough events and covered minutes."""
        return (
            self.total > 0
            and self.total >= min_events
            and self.covered >= min_covered(self.minutes)
        )

    @property
    def coverage(self) -> float:
        """Return the covered share of the window's minutes."""
        return round(self.covered / self.minutes, 6)


def measure_window(
    minutes: int, at: int, counts: CounterLookup, excluded: Sequence[MinuteSpan]
) -> WindowCounts:
    """Return the counts of a window of `minutes` up to the end of `at`.

    Without the `excluded` spans, which must not overlap (see :func:`merge_spans`).
    """
    start = at - minutes
    bad, total, covered = _between(start, at, counts)
    if not excluded:
        return WindowCounts(bad if bad > 0 else 0, total, covered, minutes)
    for begins, ends in excluded:
        if begins < at and ends > start:
            less = _between(max(begins, start), min(ends, at), counts)
            bad, total, covered = bad - less[0], total - less[1], covered - less[2]
    return WindowCounts(max(bad, 0), max(total, 0), max(covered, 0), minutes)


@lru_cache(maxsize=4096)
def min_covered(minutes: int) -> int:
    """Return how many minutes of a window must be covered for it to be known."""
    return min(minutes, max(MIN_COVERED, -(-minutes // 10)))


def merge_spans(spans: Iterable[MinuteSpan]) -> tuple[MinuteSpan, ...]:
    """Return the same minutes as sorted spans that neither overlap nor touch."""
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
    """Return the minutes whose counters :func:`evaluate.evaluate` looks up."""
    begin = at - objective.period
    wanted = {at, begin}
    wanted.update(at - window_minutes(one) for one in objective.windows)
    for begins, ends in merge_spans(objective.excluded):
        if begins < at and ends > begin:
            wanted |= {max(begins, begin), min(ends, at)}
    return wanted


def _between(start: int, end: int, counts: CounterLookup) -> tuple[Exact, Exact, int]:
    earlier, later = counts(start), counts(end)
    total = _difference(later.total, earlier.total)
    bad = total - _difference(later.good, earlier.good)
    return bad, total, later.covered - earlier.covered


def _difference(later: float, earlier: float) -> Exact:
    """Return the exact difference of two counters."""
    if later.is_integer() and earlier.is_integer():
        return int(later) - int(earlier)
    return Fraction(later) - Fraction(earlier)
