"""A threshold metric with the values a test sets, and rules about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from controlplane.core.models import Tick
from controlplane.core.threshold_metrics import (
    COUNT,
    THRESHOLD_METRICS,
    MetricQuery,
    MetricReading,
    ThresholdMetric,
)
from slo.models import Alert, ThresholdRule
from slo.thresholds import evaluation

NOW = datetime(2026, 11, 21, 2, 11, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
QUEUE = "queue_depth"


class Queues:
    """Queue depths by subject, and the queries received."""

    def __init__(self) -> None:
        self.readings: dict[str, dict[str, Any]] = {}
        self.queries: list[MetricQuery] = []
        self.broken = False

    def are(self, **depths: float | None) -> None:
        self.readings = {name: {"value": depth} for name, depth in depths.items()}

    def read(self, query: MetricQuery, now: datetime) -> Iterator[MetricReading]:
        self.queries.append(query)
        if self.broken:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        for subject, reading in self.readings.items():
            options = {"samples": 100, "path": f"/queues/{subject}/", **reading}
            value = options["value"]
            beyond = None if value is None else query.beyond(value)
            yield MetricReading(
                subject=subject, beyond=beyond, summary=f"{subject} is at {value}", **options
            )


@contextmanager
def register_metric(**fields: Any) -> Iterator[Queues]:
    """Register the metric during a test."""
    queues = Queues()
    about = "How deep a queue is."
    THRESHOLD_METRICS.register(
        ThresholdMetric(QUEUE, "Depth of queues", COUNT, ("now",), about, queues.read, **fields)
    )
    try:
        yield queues
    finally:
        THRESHOLD_METRICS.unregister(QUEUE)


def rule(name: str = "deep", **fields: Any) -> ThresholdRule:
    options = {"metric": QUEUE, "statistic": "now", "comparison": ">", "value": 10.0}
    options |= {"severity": "warning", "min_events": 1, "changed_at": NOW}
    return ThresholdRule.objects.create(name=name, **{**options, **fields})


def run_tick(now: datetime) -> int:
    """Run the tick once."""
    changed = evaluation.evaluate_rules(now)
    Tick.objects.update_or_create(name=evaluation.TICK, defaults={"ran_at": now, "ran_by": "test"})
    return changed


def list_open_alerts() -> list[tuple[str, str]]:
    """Return rules and subjects of open alerts."""
    rows = Alert.objects.filter(resolved_at__isnull=True).order_by("rule", "subject")
    return list(rows.values_list("rule", "subject"))
