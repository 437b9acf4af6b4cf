"""What was counted in a window: the difference of two look-ups, less what is excluded of it."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from . import minutes
from .counts import Counters
from .objective import MinuteSpan, Objective

MIN_COVERED = 5
"""Minutes that have to be covered of a window, unless it is shorter; and a tenth of it."""

CounterLookup = Callable[[int], Counters]
Exact = int | Fraction

window_minutes = lru_cache(maxsize=4096)(minutes.window_minutes)
"""As :func:`minutes.window_minutes`, remembered: the same few windows are read for every SLO."""


class WindowCounts(NamedTuple):
    """Events of a window, exactly as counted, and how many of its `minutes` are covered."""

    bad: Exact
    total: Exact
    covered: int
    minutes: int

    def is_known(self, min_events: int) -> bool:
        """Whether it says anything. It does if it has events, and enough minutes are covered."""
        return (
            self.total > 0
            and self.total >= min_events
            and self.covered >= min_covered(self.minutes)
        )

    @property
    def coverage(self) -> float:
        """The share of its minutes that are covered."""
        return round(self.covered / self.minutes, 6)


def measure_window(
    minutes: int, at: int, counts: CounterLookup, excluded: Sequence[MinuteSpan]
) -> WindowCounts:
    """The window of so many minutes up to the end of `at`; `excluded` are merged spans."""
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
    """How many minutes of a window have to be covered, for anything to be known of it."""
    return min(minutes, max(MIN_COVERED, -(-minutes // 10)))


def merge_spans(spans: Iterable[MinuteSpan]) -> tuple[MinuteSpan, ...]:
    """The same minutes as spans that neither overlap nor touch, in order."""
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
    """The minutes whose counters :func:`evaluate.evaluate` looks up."""
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
    """Exactly that of the very numbers which two counters stand for."""
    if later.is_integer() and earlier.is_integer():
        return int(later) - int(earlier)
    return Fraction(later) - Fraction(earlier)
