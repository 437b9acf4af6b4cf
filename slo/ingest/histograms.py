"""Latency histograms: each upper edge of a bucket has an SLI that counts the events up to it."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime

from slo.models import Sli

from .push_body import Point, RefusedEntries
from .samples import SampleBatch

MAX_EDGES = 5000
"""Most edges of all histograms together."""
MAX_PER_SOURCE = 64
"""Most edges of one metric of one service."""
INFINITE = float("inf")
Edge = tuple[str, str, float]
"""Metric, service and upper edge in milliseconds."""


def add_samples(
    batch: SampleBatch, points: Mapping[int, Point], refused: RefusedEntries, now: datetime
) -> set[int]:
    """Add pushed histograms to `batch`: a sample for each bucket edge of each point.

    Missing SLIs of edges are created; points (by index) with too many new edges are added to
    `refused`. Return the ids of the SLIs of the infinite edges, one for each histogram.
    """
    known = _load_edges({edge for point in points.values() for edge in _point_edges(point)})
    _refuse_excess(points, known, refused)
    accepted = [point for index, point in points.items() if index not in refused.reasons]
    wanted = {edge for point in accepted for edge in _point_edges(point)}
    if missing := sorted(wanted - known.keys()):  # Sorted to avoid deadlocks.
        new = (
            Sli(
                metric=metric,
                service=service,
                edge_ms=None if edge == INFINITE else edge,
                created_at=now,
            )
            for metric, service, edge in missing
        )
        Sli.objects.bulk_create(new, ignore_conflicts=True)
        known |= _load_edges(wanted)
    for point in accepted:
        buckets = point.buckets or ()
        total = buckets[-1][1]
        at = point.at or now
        for edge, count in buckets:
            sli = known[point.metric, point.service, edge]
            batch.add(sli, point.source, point.boot, at, count, total, point.started_at)
    return {known[edge] for edge in wanted if edge[2] == INFINITE}


def nearest_edges(edges: Collection[float], limit_ms: float) -> list[float]:
    """Return the nearest finite bucket edges below and above a limit, as far as they exist."""
    below = max((edge for edge in edges if edge < limit_ms), default=None)
    above = min((edge for edge in edges if limit_ms < edge < INFINITE), default=None)
    return [edge for edge in (below, above) if edge is not None]


def explain_missing_edge(threshold_ms: float, edges: Collection[float]) -> str:
    """Return the error message for a histogram without a bucket edge at an SLO's threshold."""
    edges_text = " and ".join(f"{edge:.15g}" for edge in nearest_edges(edges, threshold_ms))
    ends = f"; the nearest are {edges_text} ms" if edges_text else ""
    return f"No bucket ends at {threshold_ms:.15g} ms, the SLO's threshold{ends}."


def _refuse_excess(
    points: Mapping[int, Point], known: Collection[Edge], refused: RefusedEntries
) -> None:
    """Refuse each point whose new edges exceed the limits; `known` are the existing edges."""
    edges = set(known)
    counts_by_source = Counter(edge[:2] for edge in edges)
    free = None
    for index, point in points.items():
        new = set(_point_edges(point)) - edges
        if not new:
            continue
        if free is None:
            free = MAX_EDGES - Sli.objects.filter(slo__isnull=True).count()
        name = point.metric, point.service
        if counts_by_source[name] + len(new) > MAX_PER_SOURCE:
            why = f"At most {MAX_PER_SOURCE} edges are stored per metric and service."
            refused.add(index, "buckets", why)
        elif len(new) > free:
            why = f"At most {MAX_EDGES:,} histogram edges are stored; send fewer."
            refused.add(index, "buckets", why)
        else:
            edges |= new
            counts_by_source[name] += len(new)
            free -= len(new)


def _point_edges(point: Point) -> list[Edge]:
    return [(point.metric, point.service, edge) for edge, _ in point.buckets or ()]


def _load_edges(wanted_edges: Collection[Edge]) -> dict[Edge, int]:
    if not wanted_edges:
        return {}
    metrics = {metric for metric, _, _ in wanted_edges}
    services = {service for _, service, _ in wanted_edges}
    rows = Sli.objects.filter(slo__isnull=True, metric__in=metrics, service__in=services)
    return {
        (metric, service, INFINITE if edge is None else edge): pk
        for pk, metric, service, edge in rows.values_list("pk", "metric", "service", "edge_ms")
    }
