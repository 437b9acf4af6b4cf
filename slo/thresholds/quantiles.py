"""Percentiles of a histogram, as far as its edges tell of them. Pure.

The q-th percentile is above a limit if fewer than q % of the events took at most that: which is
known exactly where an edge is at the limit. An edge beyond it that too few events kept settles it
as well, and so does one before it that enough of them kept; between the two nobody can tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Exact = int | Fraction


@dataclass(frozen=True)
class HistogramEdge:
    """So many of `total` events (above zero) took at most `ms` milliseconds."""

    ms: float
    good: Exact
    total: Exact

    @property
    def share(self) -> float:
        return float(self.good / self.total)

    def keeps(self, share: Fraction) -> bool:
        """Whether at least this share of the events is within it, exactly."""
        return self.good >= share * self.total


def is_above(edges: Sequence[HistogramEdge], share: Fraction, limit_ms: float) -> bool | None:
    """Whether the percentile (`share` is 0.95 for the 95th) is above the limit; None if the edges
    don't tell."""
    at = next((one for one in edges if one.ms == limit_ms), None)
    if at is not None:
        return not at.keeps(share)
    if any(one.ms > limit_ms and not one.keeps(share) for one in edges):
        return True
    if any(one.ms < limit_ms and one.keeps(share) for one in edges):
        return False
    return None


def quantile_bound(edges: Sequence[HistogramEdge], share: Fraction) -> float | None:
    """The first edge that the percentile is within, in milliseconds; None if it is beyond all."""
    return min((one.ms for one in edges if one.keeps(share)), default=None)


def nearest_edges(edges: Sequence[HistogramEdge], limit_ms: float) -> list[float]:
    """The edges on both sides of the limit."""
    below = max((one.ms for one in edges if one.ms < limit_ms), default=None)
    above = min((one.ms for one in edges if one.ms > limit_ms), default=None)
    return [one for one in (below, above) if one is not None]
