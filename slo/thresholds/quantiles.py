"""Percentiles of a histogram, as far as its edges allow. Pure.

The q-th percentile is above a limit if fewer than q % of the events were within it. That is known
exactly if an edge is at the limit. It also follows from a higher edge with too few events, or a
lower edge with enough; between the two it is unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Exact = int | Fraction


@dataclass(frozen=True)
class HistogramEdge:
    """`good` of `total` events (above zero) took at most `ms` milliseconds."""

    ms: float
    good: Exact
    total: Exact

    @property
    def share(self) -> float:
        return float(self.good / self.total)

    def keeps(self, share: Fraction) -> bool:
        """Return whether at least this share of the events is within the edge, exactly."""
        return self.good >= share * self.total


def is_above(edges: Sequence[HistogramEdge], share: Fraction, limit_ms: float) -> bool | None:
    """Return whether a percentile is above the limit, None if the edges can't tell.

    `share` is 0.95 for the 95th percentile.
    """
    at = next((one for one in edges if one.ms == limit_ms), None)
    if at is not None:
        return not at.keeps(share)
    if any(one.ms > limit_ms and not one.keeps(share) for one in edges):
        return True
    if any(one.ms < limit_ms and one.keeps(share) for one in edges):
        return False
    return None


def quantile_bound(edges: Sequence[HistogramEdge], share: Fraction) -> float | None:
    """Return the first edge (milliseconds) that the percentile is within, None if beyond all."""
    return min((one.ms for one in edges if one.keeps(share)), default=None)


def nearest_edges(edges: Sequence[HistogramEdge], limit_ms: float) -> list[float]:
    """Return the edges on both sides of the limit."""
    below = max((one.ms for one in edges if one.ms < limit_ms), default=None)
    above = min((one.ms for one in edges if one.ms > limit_ms), default=None)
    return [one for one in (below, above) if one is not None]
