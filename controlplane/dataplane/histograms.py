"""Latency histograms that are cheap to update; a scrape converts them to metrics."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import HistogramMetricFamily, Metric


class Histogram:
    """Counts of durations by bucket, without a lock.

    `bounds` are the upper bounds of the buckets, inclusive and in seconds.
    """

    __slots__ = ("_bounds", "_counts", "_sum_seconds")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum_seconds += seconds

    def add_to(self, family: "HistogramMetricFamily", labels: Sequence[str]) -> None:
        """Add this histogram to a metric family, as a series with these labels."""
        bounds = (*map(str, map(float, self._bounds)), "+Inf")
        totals = accumulate(list(self._counts))
        family.add_metric(labels, list(zip(bounds, totals, strict=True)), self._sum_seconds)


def build_family(
    name: str,
    help_text: str,
    labels: Iterable[str],
    histograms: Iterable[tuple[tuple[str, ...], Histogram]],
) -> "Metric":
    """Return a metric family with a series for each (label values, histogram) pair."""
    from prometheus_client.core import HistogramMetricFamily  # Slow; not needed by a start.

    family = HistogramMetricFamily(name, help_text, labels=[*labels])
    for values, histogram in sorted(histograms, key=itemgetter(0)):
        histogram.add_to(family, values)
    return family
