"""Increments of an SLI by minute, collected before they are written. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from slo.arithmetic.increments import Increment, covered_minutes, split_by_minute


@dataclass
class MinuteIncrements:
    """Additions to an SLI: counts by minute (`[good, total]`), and the covered minutes.

    Every minute in it gets a row, also one without events.
    """

    counts: dict[int, list[float]] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)

    def add(self, increments: Iterable[Increment], sign: int = 1) -> None:
        """Add increments; with a `sign` of -1 subtract them."""
        for increment in increments:
            for minute, good, total in split_by_minute(increment):
                self.put(minute, sign * good, sign * total)

    def put(self, minute: int, good: float, total: float) -> None:
        minute_counts = self.counts.get(minute)
        if minute_counts is None:
            self.counts[minute] = [good, total]
        else:
            minute_counts[0] += good
            minute_counts[1] += total

    def cover(self, spans: Iterable[tuple[int, int]]) -> None:
        for began, ended in spans:
            self.covered.update(covered_minutes(began, ended))

    def minutes(self) -> list[int]:
        """Return the minutes in it, in order."""
        return sorted(self.covered.union(self.counts))
