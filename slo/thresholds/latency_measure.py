"""Percentiles of latencies from pushed histograms."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from controlplane.core.durations import format_readable
from controlplane.core.threshold_metrics import ABOVE, MetricQuery, MetricReading, format_count
from slo.arithmetic.counts import CounterValues
from slo.arithmetic.minutes import last_ended
from slo.arithmetic.windows import WindowCounts, measure_window
from slo.counters import reader
from slo.models import Sli

from . import quantiles
from .quantiles import HistogramEdge

SHARES: Mapping[str, Fraction] = {
    "p50": Fraction(50, 100),
    "p75": Fraction(75, 100),
    "p90": Fraction(90, 100),
    "p95": Fraction(95, 100),
    "p99": Fraction(99, 100),
    "p99.9": Fraction(999, 1000),
}
TO_DO = "See what became slow: a callee, a queue, or the load."
PAGE = "/slos/thresholds/"
_MINUTE = timedelta(minutes=1)


class HistogramKey(NamedTuple):
    """The metric of a histogram, and the service that pushed it."""

    service: str
    metric: str

    @property
    def subject(self) -> str:
        return f"{self.service}/{self.metric}"


def read_latency(query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
    """Yield the percentile of every histogram, over whole minutes that have ended."""
    at, minutes = last_ended(now), query.window // _MINUTE
    known = _load_edges(query.part)
    if not known:
        yield _no_histograms(query)
    rows = [sli for slis in known.values() for _, sli in slis]
    counts = reader.load_counts({sli: {at, at - minutes} for sli in rows}) if rows else {}
    for histogram, slis in known.items():
        windows = [(ms, _window(counts, sli, minutes, at)) for ms, sli in slis]
        yield _reading(query, histogram, windows)


def _no_histograms(query: MetricQuery) -> MetricReading:
    """Return an unknown reading: no histogram does not mean that all is well."""
    of = f" of {query.part}" if query.part else ""
    said = f"Nobody has pushed a latency histogram{of}"
    subject, path = query.part or "latency", PAGE
    return MetricReading(subject, value=None, beyond=None, samples=0, said=said, path=path)


def _load_edges(part: str) -> dict[HistogramKey, list[tuple[float, int]]]:
    """Return the edges (milliseconds, SLI id) of every histogram, or of those of one metric."""
    rows = Sli.objects.filter(slo__isnull=True, edge_ms__isnull=False, first__isnull=False)
    if part:
        rows = rows.filter(metric=part)
    found: dict[HistogramKey, list[tuple[float, int]]] = defaultdict(list)
    wanted = rows.order_by("service", "metric", "edge_ms")
    for pk, service, metric, ms in wanted.values_list("pk", "service", "metric", "edge_ms"):
        found[HistogramKey(service, metric)].append((float(ms or 0), pk))
    return found


def _window(
    counts: Mapping[tuple[int, int], CounterValues], sli: int, minutes: int, at: int
) -> WindowCounts:
    return measure_window(minutes, at, lambda minute: counts[sli, minute], ())


def _reading(
    query: MetricQuery, histogram: HistogramKey, windows: Sequence[tuple[float, WindowCounts]]
) -> MetricReading:
    share, limit = SHARES[query.statistic], query.limit
    known_windows = [(ms, one) for ms, one in windows if one.is_known(0)]
    edges = [HistogramEdge(ms, one.total - one.bad, one.total) for ms, one in known_windows]
    above = quantiles.is_above(edges, share, limit)
    beyond = above if above is None or query.comparison == ABOVE else not above
    samples = float(max((one.total for one in edges), default=0))
    return MetricReading(
        subject=histogram.subject,
        value=quantiles.quantile_bound(edges, share),
        beyond=beyond,
        samples=samples,
        said=_describe(query, histogram, edges, share, beyond),
        path=PAGE,
        service=histogram.service,
        evidence={
            "metric": histogram.metric,
            "statistic": query.statistic,
            "events": samples,
            "window_seconds": query.window // timedelta(seconds=1),
            "within": {f"{one.ms:g}": one.share for one in edges},
        },
        facts={"to_do": TO_DO},
    )


def _describe(
    query: MetricQuery,
    histogram: HistogramKey,
    edges: Sequence[HistogramEdge],
    share: Fraction,
    beyond: bool | None,
) -> str:
    about, limit = histogram.subject, f"{query.limit:,g} ms"
    over = format_readable(query.window)
    if not edges:
        return f"Too little is known of {about} in {over}"
    if beyond is None:
        near = " and ".join(f"{one:,g}" for one in quantiles.nearest_edges(edges, query.limit))
        return f"{about} has no edge at {limit}, and its nearest ({near} ms) do not tell"
    within = quantiles.quantile_bound(edges, share)
    reached = f"at most {within:,g} ms" if within else f"above {edges[-1].ms:,g} ms"
    at = next((one for one in edges if one.ms == query.limit), None)
    detail = f"; {at.share:.1%} took at most {limit}" if at else ""
    allowed = "at most" if query.comparison == ABOVE else "more than"
    return (
        f"The {query.statistic} of {about} is {reached} in {over} "
        f"({limit} {allowed}{detail}; {format_count(float(edges[0].total))} events)"
    )
