"""Counters of events up to the end of a minute."""

from typing import NamedTuple


class CounterValues(NamedTuple):
    """`good` of `total` events, and the minutes `covered` by samples.

    Cumulative since the beginning, or the difference of two such values.
    """

    good: float
    total: float
    covered: int

    def __sub__(self, earlier: "CounterValues") -> "CounterValues":
        """Return the events and minutes counted after `earlier`, up to this value."""
        return CounterValues(
            self.good - earlier.good, self.total - earlier.total, self.covered - earlier.covered
        )

    @property
    def bad(self) -> float:
        return self.total - self.good


ZERO = CounterValues(0.0, 0.0, 0)
