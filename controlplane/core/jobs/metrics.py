"""Prometheus metrics of jobs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Count
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from controlplane.core.jobs import figures, kinds, watch
from controlplane.core.jobs.models import Job
from controlplane.core.metrics import DATABASE_METRICS

DURATIONS_FROM = timedelta(days=30)
BUCKETS = (1, 5, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)  # seconds

# The place says how many buckets a duration fits in: a bucket takes in what equals its edge.
_DURATIONS = """
    SELECT kind, width_bucket(-seconds, %s::float[]) AS place, count(*), sum(seconds) FROM (
        SELECT kind, greatest(extract(epoch FROM finished_at - started_at)::float, 0) AS seconds
        FROM core_job WHERE finished_at > %s AND started_at IS NOT NULL
    ) AS ended GROUP BY kind, place
"""
_LIVE = "SELECT kind, state, count(*) FROM core_job WHERE finished_at IS NULL GROUP BY kind, state"
_EVER = """
    SELECT kind, count(compensation_failed_at), sum(duplicates_stopped)
    FROM core_job WHERE compensation_failed_at IS NOT NULL OR duplicates_stopped > 0 GROUP BY kind
"""


@DATABASE_METRICS.add()
def families(now: datetime) -> Iterator[Metric]:
    """Yield the metrics; every kind has its series, steps only once they ended."""
    names = sorted(kinds.get_kinds())
    yield _durations(now)
    yield from _of_steps(now)
    yield _count_live(names)
    yield _by_kind(
        GaugeMetricFamily(
            "switchgear_job_stuck",
            "Jobs that are to be worked on and show no life for five minutes.",
            labels=["kind"],
        ),
        names,
        dict(
            watch.filter_stuck_jobs(Job.objects.all(), now)
            .values("kind")
            .order_by("kind")
            .annotate(count=Count("pk"))
            .values_list("kind", "count")
        ),
    )
    yield from _count_total(names)
    yield _by_kind(
        GaugeMetricFamily(
            "switchgear_job_checkpoint_bytes",
            "Size of the largest checkpoint of the jobs that are not over.",
            labels=["kind"],
        ),
        names,
        figures.measure_checkpoints(),
    )


def _durations(now: datetime) -> Metric:
    # Of a window, so it shrinks: what a counter may not.
    family = GaugeHistogramMetricFamily(
        "switchgear_job_duration_seconds",
        "How long jobs took, from their start to their end, that ended in the last 30 days.",
        labels=["kind"],
    )
    edges = [-bucket for bucket in reversed(BUCKETS)]
    found: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for kind, place, count, seconds in _rows(_DURATIONS, [edges, now - DURATIONS_FROM]):
        found[kind].append((len(BUCKETS) - place, count, seconds))
    for kind, places in sorted(found.items()):
        buckets = [
            (le, sum(count for first, count, _ in places if first <= index))
            for index, le in enumerate([*(str(float(bucket)) for bucket in BUCKETS), "+Inf"])
        ]
        family.add_metric([kind], buckets, gsum_value=sum(seconds for _, _, seconds in places))
    return family


def _of_steps(now: datetime) -> Iterator[Metric]:
    failures = GaugeMetricFamily(
        "switchgear_job_step_failure_ratio",
        "Share of steps that failed for good, of those that ended in the last day.",
        labels=["kind", "step"],
    )
    attempts = GaugeMetricFamily(
        "switchgear_job_step_attempts_avg",
        "Attempts that steps took on average, of those that ended in the last day.",
        labels=["kind", "step"],
    )
    for one in figures.measure_steps(now):
        failures.add_metric([one.kind, one.step], one.failure_ratio)
        attempts.add_metric([one.kind, one.step], one.attempts)
    yield failures
    yield attempts


def _count_live(names: Iterable[str]) -> Metric:
    family = GaugeMetricFamily(
        "switchgear_jobs", "Jobs that are not over.", labels=["kind", "state"]
    )
    counts = {(kind, state): 0 for kind in names for state in Job.LIVE}
    counts |= {(kind, state): count for kind, state, count in _rows(_LIVE)}
    for (kind, state), count in counts.items():
        family.add_metric([kind, str(state)], count)
    return family


def _count_total(names: Iterable[str]) -> Iterator[Metric]:
    """Yield counters, which only grow: jobs that count here are never deleted."""
    failed: dict[str, int] = {}
    stopped: dict[str, int] = {}
    for kind, failures, duplicates in _rows(_EVER):
        failed[kind], stopped[kind] = failures, duplicates
    yield _by_kind(
        CounterMetricFamily(
            "switchgear_job_compensation_failures",
            "Jobs of which something could not be taken back, at least at first.",
            labels=["kind"],
        ),
        names,
        failed,
    )
    yield _by_kind(
        CounterMetricFamily(
            "switchgear_job_duplicates_stopped",
            "Writes of workers that had lost their lease, and repeated side effects.",
            labels=["kind"],
        ),
        names,
        stopped,
    )


def _by_kind(
    family: GaugeMetricFamily | CounterMetricFamily,
    names: Iterable[str],
    values: Mapping[str, float],
) -> Metric:
    for kind, value in (dict.fromkeys(names, 0.0) | dict(values)).items():
        family.add_metric([kind], value)
    return family


def _rows(statement: str, given: Any = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return list(cursor.fetchall())
