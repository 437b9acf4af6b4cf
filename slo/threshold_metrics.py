"""Latency percentiles from pushed histograms, as a metric for threshold rules."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from controlplane.core.durations import format_readable
from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_MOST,
    MILLISECONDS,
    THRESHOLD_METRICS,
    MetricQuery,
    MetricReading,
    ThresholdMetric,
    format_count,
)
from slo.arithmetic.minutes import MINUTE, last_ended
from slo.arithmetic.windows import Exact, measure_window
from slo.counters import reader
from slo.ingest.histograms import nearest_edges
from slo.models import Sli

SHARES = {f"p{one}": Fraction(one) / 100 for one in ("50", "75", "90", "95", "99", "99.9")}
"""Percentiles, as shares of all events."""
TO_DO = "Find what became slow: a callee, a queue, or the load."
PAGE = "/slos/thresholds/"


@dataclass(frozen=True)
class HistogramEdge:
    """A bucket edge of a histogram: `good` of `total` (above zero) events took at most `ms`."""

    ms: float
    good: Exact
    total: Exact

    @property
    def share(self) -> float:
        return float(self.good / self.total)

    def contains_share(self, share: Fraction) -> bool:
        """Return True if at least this share of the events is below the edge, compared exactly."""
        return self.good >= share * self.total


def is_above(edges: Sequence[HistogramEdge], share: Fraction, limit_ms: float) -> bool | None:
    """Return True if a histogram's percentile (p95 is `share` 0.95) is above a limit.

    It is above if fewer than that share of the events took at most `limit_ms`. None if the limit
    lies between two edges, and the events may be on either side of it.
    """
    at = next((one for one in edges if one.ms == limit_ms), None)
    if at is not None:
        return not at.contains_share(share)
    if any(one.ms > limit_ms and not one.contains_share(share) for one in edges):
        return True
    if any(one.ms < limit_ms and one.contains_share(share) for one in edges):
        return False
    return None


def quantile_bound(edges: Sequence[HistogramEdge], share: Fraction) -> float | None:
    """Return an upper bound of a histogram's percentile: the lowest edge (ms) it does not exceed.

    None if it exceeds all edges. `share` is 0.95 for p95.
    """
    return min((one.ms for one in edges if one.contains_share(share)), default=None)


def read_latency(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    """Yield the percentile that the query asks for, of each pushed histogram, over its window."""
    at, minutes = last_ended(now), query.window // MINUTE
    edges = _load_edges(query.part)
    if not edges:
        of_part = f" of {query.part}" if query.part else ""
        sentence = f"No latency histogram was pushed{of_part}"
        subject = query.part or "latency"
        yield MetricReading(
            subject, value=None, beyond=None, samples=0, summary=sentence, path=PAGE
        )
    slis = [sli for some in edges.values() for _, sli in some]
    counts = reader.load_counts({sli: {at, at - minutes} for sli in slis})
    for (service, metric), some in edges.items():
        histogram = []
        for ms, sli in some:
            bounds = {minute: counts[sli, minute] for minute in (at - minutes, at)}
            window = measure_window(minutes, at, bounds.__getitem__, ())
            if window.is_known(0):
                histogram.append(HistogramEdge(ms, window.total - window.bad, window.total))
        yield _make_reading(query, service, metric, histogram)


def _load_edges(part: str) -> dict[tuple[str, str], list[tuple[float, int]]]:
    """Return the latency limits of SLIs, which are bucket edges of reported histograms.

    The result has (milliseconds, SLI id) by service and metric; if `part` is not empty, only of the
    metric of that name.
    """
    rows = Sli.objects.filter(slo__isnull=True, edge_ms__isnull=False, first__isnull=False)
    if part:
        rows = rows.filter(metric=part)
    found: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    ordered = rows.order_by("service", "metric", "edge_ms")
    for pk, service, metric, ms in ordered.values_list("pk", "service", "metric", "edge_ms"):
        found[service, metric].append((float(ms or 0), pk))
    return found


def _make_reading(
    query: MetricQuery, service: str, metric: str, edges: Sequence[HistogramEdge]
) -> MetricReading:
    share = SHARES[query.statistic]
    above = is_above(edges, share, query.limit)
    beyond = above if above is None or query.comparison == ABOVE else not above
    samples = float(max((one.total for one in edges), default=0))
    subject = f"{service}/{metric}"
    return MetricReading(
        subject=subject,
        value=quantile_bound(edges, share),
        beyond=beyond,
        samples=samples,
        summary=_describe_reading(query, subject, edges, share, beyond),
        path=PAGE,
        service=service,
        evidence={
            "metric": metric,
            "statistic": query.statistic,
            "events": samples,
            "window_seconds": query.window // timedelta(seconds=1),
            "within": {f"{one.ms:g}": one.share for one in edges},
        },
        facts={"to_do": TO_DO},
    )


def _describe_reading(
    query: MetricQuery,
    about: str,
    edges: Sequence[HistogramEdge],
    share: Fraction,
    beyond: bool | None,
) -> str:
    limit, over = f"{query.limit:,g} ms", format_readable(query.window)
    if not edges:
        return f"Too few data on {about} in {over}"
    if beyond is None:
        near_edges = nearest_edges([one.ms for one in edges], query.limit)
        near = " and ".join(f"{one:,g}" for one in near_edges)
        return (
            f"{about} has no edge at {limit}, and the nearest ones ({near} ms) are not conclusive"
        )
    within = quantile_bound(edges, share)
    reached = f"at most {within:,g} ms" if within else f"above {edges[-1].ms:,g} ms"
    at = next((one for one in edges if one.ms == query.limit), None)
    detail = f"; {at.share:.1%} took at most {limit}" if at else ""
    kind = "limit" if query.comparison == ABOVE else "minimum"
    return (
        f"The {query.statistic} of {about} is {reached} in {over} "
        f"({kind} {limit}{detail}; {format_count(float(edges[0].total))} events)"
    )


THRESHOLD_METRICS.register(
    ThresholdMetric(
        name="latency_ms",
        title="Latency",
        unit=MILLISECONDS,
        statistics=tuple(SHARES),
        about=(
            "A percentile of the latencies that a service pushed as a histogram; exact if the"
            " histogram has an edge at the limit."
        ),
        read=read_latency,
        comparisons=(ABOVE, AT_MOST),
        windows=(timedelta(minutes=1), timedelta(days=30)),
        parts="metric",
    )
)
