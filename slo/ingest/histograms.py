"""Latency histograms: each upper edge is an SLI, whose good events took at most that long."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from slo.models import Sli

from .push_body import Point
from .samples import SampleBatch

MAX_EDGES = 5000
"""Most edges of all histograms together."""
MAX_PER_SOURCE = 64
"""Most edges of one metric of one service."""
INFINITE = float("inf")
Edge = tuple[str, str, float]
"""Metric, service and upper edge in milliseconds."""


@dataclass(frozen=True)
class AddedHistograms:
    """The outcome of :func:`add_samples`.

    `whole` are the ids of the SLIs of infinite edges; there is one for each histogram. `refused`
    holds the reason for each refused point, by index.
    """

    whole: set[int]
    refused: dict[int, str]


def add_samples(batch: SampleBatch, points: Mapping[int, Point], now: datetime) -> AddedHistograms:
    """Add a sample to `batch` for each edge of histogram points (by index).

    Missing SLIs of edges are created. Points with too many new edges are refused.
    """
    known = _load_edges({edge for point in points.values() for edge in _point_edges(point)})
    refused = _find_refused(points, known)
    accepted = [point for index, point in points.items() if index not in refused]
    ids = _get_or_create_ids(
        {edge for point in accepted for edge in _point_edges(point)}, known, now
    )
    for point in accepted:
        buckets = point.buckets or ()
        total = buckets[-1][1]
        at = point.at or now
        for edge, count in buckets:
            sli = ids[point.metric, point.service, edge]
            batch.add(sli, point.source, point.boot, at, count, total, point.started_at)
    whole = {sli for (_, _, edge), sli in ids.items() if edge == INFINITE}
    return AddedHistograms(whole, refused)


def explain_missing_edge(threshold_ms: float, edges: Collection[float]) -> str:
    """Return the message that a histogram has no edge at a threshold, with the nearest edges."""
    below = [edge for edge in edges if edge < threshold_ms]
    above = [edge for edge in edges if threshold_ms < edge < INFINITE]
    nearest = [max(below)] if below else []
    nearest += [min(above)] if above else []
    edges_text = " and ".join(f"{edge:.15g}" for edge in nearest)
    ends = f"; the nearest end at {edges_text} ms" if nearest else ""
    return f"No bucket ends at {threshold_ms:.15g} ms, the SLO's threshold{ends}."


def _find_refused(points: Mapping[int, Point], known: Collection[Edge]) -> dict[int, str]:
    """Return the reason for each point whose new edges exceed the limits, by index."""
    edges = set(known)
    counts_by_source = Counter(edge[:2] for edge in edges)
    free = None
    refused = {}
    for index, point in points.items():
        new = set(_point_edges(point)) - edges
        if not new:
            continue
        if free is None:
            free = MAX_EDGES - Sli.objects.filter(slo__isnull=True).count()
        name = point.metric, point.service
        if counts_by_source[name] + len(new) > MAX_PER_SOURCE:
            refused[index] = (
                f"No more than {MAX_PER_SOURCE} edges of a metric of a service are kept."
            )
        elif len(new) > free:
            refused[index] = f"No more than {MAX_EDGES:,} edges of histograms are kept; send fewer."
        else:
            edges |= new
            counts_by_source[name] += len(new)
            free -= len(new)
    return refused


def _point_edges(point: Point) -> list[Edge]:
    return [(point.metric, point.service, edge) for edge, _ in point.buckets or ()]


def _get_or_create_ids(
    wanted_edges: Collection[Edge], known: Mapping[Edge, int], now: datetime
) -> Mapping[Edge, int]:
    """Return the SLI ids of the wanted edges; `known` holds the existing ones.

    Missing SLIs are created, in sorted order to avoid deadlocks.
    """
    missing = sorted(set(wanted_edges) - known.keys())
    if missing:
        Sli.objects.bulk_create((_new_sli(edge, now) for edge in missing), ignore_conflicts=True)
        known = {**known, **_load_edges(wanted_edges)}
    return {edge: known[edge] for edge in wanted_edges}


def _load_edges(wanted_edges: Collection[Edge]) -> dict[Edge, int]:
    if not wanted_edges:
        return {}
    metrics = {metric for metric, _, _ in wanted_edges}
    services = {service for _, service, _ in wanted_edges}
    rows = Sli.objects.filter(slo__isnull=True, metric__in=metrics, service__in=services)
    return {
        (metric, service, INFINITE if edge is None else edge): one
        for one, metric, service, edge in rows.values_list("pk", "metric", "service", "edge_ms")
    }


def _new_sli(edge: Edge, now: datetime) -> Sli:
    metric, service, edge_ms = edge
    return Sli(
        metric=metric,
        service=service,
        edge_ms=None if edge_ms == INFINITE else edge_ms,
        created_at=now,
    )
