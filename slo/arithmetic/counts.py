"""Counters of events up to the end of a minute."""

from typing import NamedTuple


class Counters(NamedTuple):
    """`good` of `total` events, and the minutes `covered` by samples, since ever or of a window."""

    good: float
    total: float
    covered: int

    def __sub__(self, earlier: "Counters") -> "Counters":
        """What came after `earlier`, up to this one."""
        return Counters(
            self.good - earlier.good, self.total - earlier.total, self.covered - earlier.covered
        )

    @property
    def bad(self) -> float:
        """Events that were not good."""
        return self.total - self.good


ZERO = Counters(0.0, 0.0, 0)
