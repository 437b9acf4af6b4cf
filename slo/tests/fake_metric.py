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
        self.said: dict[str, dict[str, Any]] = {}
        self.asked: list[MetricQuery] = []
        self.broken = False

    def are(self, **depths: float | None) -> None:
        self.said = {name: {"value": depth} for name, depth in depths.items()}

    def read(self, asked: MetricQuery, now: datetime) -> Iterator[MetricReading]:
        self.asked.append(asked)
        if self.broken:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        for subject, said in self.said.items():
            given = {"samples": 100, "path": f"/queues/{subject}/", **said}
            value = given["value"]
            beyond = None if value is None else asked.beyond(value)
            yield MetricReading(
                subject=subject, beyond=beyond, said=f"{subject} is at {value}", **given
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
    given = {"metric": QUEUE, "statistic": "now", "comparison": ">", "value": 10.0}
    given |= {"severity": "warning", "min_events": 1, "changed_at": NOW}
    return ThresholdRule.objects.create(name=name, **{**given, **fields})


def run_tick(now: datetime) -> int:
    """Run the tick once."""
    done = evaluation.evaluate_rules(now)
    Tick.objects.update_or_create(name=evaluation.TICK, defaults={"ran_at": now, "ran_by": "test"})
    return done


def list_open_alerts() -> list[tuple[str, str]]:
    """Return rules and subjects of open alerts."""
    rows = Alert.objects.filter(resolved_at__isnull=True).order_by("rule", "subject")
    return list(rows.values_list("rule", "subject"))
