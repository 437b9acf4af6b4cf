from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.db.models import Count
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeHistogramMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from controlplane.core.exposition import make_family
from controlplane.core.jobs import figures, kinds, stuck_jobs
from controlplane.core.jobs.models import Job
from controlplane.core.metrics import DATABASE_METRICS
from controlplane.core.sql import fetch_all

DURATIONS_FROM = timedelta(days=30)
BUCKETS = (1, 5, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)  # seconds

# `place` is the number of buckets that contain the duration; bucket limits are inclusive.
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
def collect_job_metrics(now: datetime) -> Iterator[Metric]:
    """Yield the Prometheus metrics of jobs, by job kind or by step name."""
    stuck = stuck_jobs.filter_stuck_jobs(Job.objects.all(), now).values("kind").order_by("kind")
    ever = fetch_all(_EVER)
    yield _build_duration_histogram(now)
    yield from _build_step_metrics(now)
    yield _build_live_gauge()
    yield _build_by_kind(
        GaugeMetricFamily,
        "switchgear_job_stuck",
        "Due jobs without a heartbeat for five minutes.",
        dict(stuck.annotate(count=Count("pk")).values_list("kind", "count")),
    )
    # Retention keeps the jobs that the counters count, so that these never decrease.
    yield _build_by_kind(
        CounterMetricFamily,
        "switchgear_job_compensation_failures",
        "Jobs whose rollback failed, at least at first.",
        {kind: failures for kind, failures, _ in ever},
    )
    yield _build_by_kind(
        CounterMetricFamily,
        "switchgear_job_duplicates_stopped",
        "Rejected writes of workers that lost their lease, and repeated side effects.",
        {kind: stopped for kind, _, stopped in ever},
    )
    yield _build_by_kind(
        GaugeMetricFamily,
        "switchgear_job_checkpoint_bytes",
        "Size of the largest checkpoint of unfinished jobs.",
        figures.measure_checkpoints(),
    )


def _build_duration_histogram(now: datetime) -> Metric:
    # A gauge: its values shrink as jobs leave the window, and counters must not shrink.
    family = GaugeHistogramMetricFamily(
        "switchgear_job_duration_seconds",
        "Duration of the jobs that ended in the last 30 days.",
        labels=["kind"],
    )
    edges = [-bucket for bucket in reversed(BUCKETS)]
    by_kind: dict[str, list[tuple[int, int, float]]] = defaultdict(list)
    for kind, place, count, seconds in fetch_all(_DURATIONS, [edges, now - DURATIONS_FROM]):
        by_kind[kind].append((len(BUCKETS) - place, count, seconds))
    for kind, places in sorted(by_kind.items()):
        buckets = [
            (le, sum(count for first, count, _ in places if first <= index))
            for index, le in enumerate([*(str(float(bucket)) for bucket in BUCKETS), "+Inf"])
        ]
        family.add_metric([kind], buckets, gsum_value=sum(seconds for _, _, seconds in places))
    return family


def _build_step_metrics(now: datetime) -> Iterator[Metric]:
    steps = figures.measure_steps(now)
    yield make_family(
        "switchgear_job_step_failure_ratio",
        "Share of failed steps among those that ended in the last day.",
        ["kind", "step"],
        (([step.kind, step.step], step.failure_ratio) for step in steps),
    )
    yield make_family(
        "switchgear_job_step_attempts_avg",
        "Average attempts of the steps that ended in the last day.",
        ["kind", "step"],
        (([step.kind, step.step], step.attempts) for step in steps),
    )


def _build_live_gauge() -> Metric:
    counts = {(kind, str(state)): 0 for kind in sorted(kinds.get_kinds()) for state in Job.LIVE}
    counts |= {(kind, state): count for kind, state, count in fetch_all(_LIVE)}
    return make_family("switchgear_jobs", "Unfinished jobs.", ["kind", "state"], counts.items())


def _build_by_kind(
    family_type: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    documentation: str,
    values: Mapping[str, float],
) -> Metric:
    """Return a metric with one sample for each job kind: its entry in `values`, or 0."""
    by_kind = dict.fromkeys(sorted(kinds.get_kinds()), 0.0) | dict(values)
    samples = (([kind], value) for kind, value in by_kind.items())
    return make_family(name, documentation, ["kind"], samples, family_type)
