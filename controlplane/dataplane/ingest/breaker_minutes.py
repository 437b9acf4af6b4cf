"""Breaker counts by dependency and minute, summed until they are written. Pure, bounded.

A sum that could not be written is lost rather than counted twice.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from .report_fields import COUNTERS

MINUTE_SECONDS = 60
MAX_SUMS = 50_000
MAX_LOOKBACK = 60
"""Most minutes that a report is spread over after a long silence; older ones are left out."""
MAX_SUM = 2**53
"""Upper limit of a sum: the database adds it to an 8-byte integer."""
_FALLBACK = COUNTERS.index("fallback")

Key = tuple[int, int]
"""A dependency's id, and the number of a minute since 1970."""


class MinuteSums:
    """Sums for at most `most` pairs of dependency and minute; further ones are left out."""

    def __init__(self, most: int = MAX_SUMS) -> None:
        self.left_out = 0
        """Increments that were not counted, because the limit was reached."""
        self._most = most
        self._sums: dict[Key, list[int]] = {}
        self._totals: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._sums) + len(self._totals)

    def grew(
        self, dependency: int, since: datetime, until: datetime, counts: Sequence[int]
    ) -> None:
        """Add counter increments of a dependency, spread evenly between two moments."""
        self._add_total(dependency, 0, counts[_FALLBACK])
        for minute, share in _spread(since.timestamp(), until.timestamp(), counts):
            sums = self._sums.get((dependency, minute))
            if sums is None:
                if len(self._sums) >= self._most:
                    self.left_out += 1
                    return
                sums = self._sums[dependency, minute] = [0] * len(COUNTERS)
            for place, number in enumerate(share):
                sums[place] = min(sums[place] + number, MAX_SUM)

    def tripped(self, dependency: int) -> None:
        """Count a trip of a breaker of `dependency`."""
        self._add_total(dependency, 1, 0)

    def take_sums(self) -> dict[Key, list[int]]:
        """Return and reset the sums by dependency and minute."""
        taken, self._sums = self._sums, {}
        return taken

    def take_totals(self) -> dict[int, list[int]]:
        """Return and reset the totals (trips, fallbacks) by dependency."""
        taken, self._totals = self._totals, {}
        return taken

    def give_back(self, totals: Mapping[int, Sequence[int]]) -> None:
        """Add back totals that certainly were not written."""
        for dependency, (trips, fallbacks) in totals.items():
            self._add_total(dependency, trips, fallbacks)

    def _add_total(self, dependency: int, trips: int, fallbacks: int) -> None:
        if not trips and not fallbacks:
            return
        if dependency not in self._totals and len(self._totals) >= self._most:
            self.left_out += 1
            return
        totals = self._totals.setdefault(dependency, [0, 0])
        totals[0] = min(totals[0] + trips, MAX_SUM)
        totals[1] = min(totals[1] + fallbacks, MAX_SUM)


def _spread(since: float, until: float, counts: Sequence[int]) -> list[tuple[int, Sequence[int]]]:
    """Return the share of `counts` for each minute, as integers with an exact total."""
    last = int(until // MINUTE_SECONDS)
    first = min(last, int(since // MINUTE_SECONDS))
    if first == last:
        return [(last, counts)]
    length = until - since
    result: list[tuple[int, Sequence[int]]] = []
    for minute in range(max(first, last - MAX_LOOKBACK + 1), last + 1):
        begins = max(since, minute * MINUTE_SECONDS) - since
        ends = min(until, (minute + 1) * MINUTE_SECONDS) - since
        share = [int(n * ends / length) - int(n * begins / length) for n in counts]
        if any(share):
            result.append((minute, share))
    return result
