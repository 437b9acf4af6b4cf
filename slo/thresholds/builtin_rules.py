"""The built-in threshold rules of a new installation; they are edited like any other.

Plain data, for the migration and for tests that empty the tables.
"""

from datetime import datetime
from typing import Any

RULES: tuple[dict[str, Any], ...] = (
    {
        "name": "e2e_latency",
        "title": "Slow answers: the 95th percentile from end to end",
        "metric": "latency_ms:e2e",
        "statistic": "p95",
        "window": "5m",
        "value": 5000.0,
        "min_events": 20,
        "severity": "warning",
    },
    {
        "name": "timeout_rate",
        "title": "Calls that time out",
        "metric": "timeout_rate",
        "statistic": "rate",
        "window": "5m",
        "value": 0.01,
        "min_events": 20,
        "severity": "warning",
    },
    {
        "name": "retry_rate",
        "title": "Calls that are repeats",
        "metric": "retry_rate",
        "statistic": "rate",
        "window": "5m",
        "value": 0.10,
        "min_events": 20,
        "severity": "info",
    },
    {
        "name": "breaker_open",
        "title": "A breaker has tripped",
        "metric": "breaker_open",
        "statistic": "count",
        "window": "",
        "value": 0.0,
        "min_events": 1,
        "severity": "warning",
    },
    {
        "name": "switch_engaged",
        "title": "A switch is engaged",
        "metric": "switch_engaged",
        "statistic": "now",
        "window": "",
        "value": 0.0,
        "min_events": 1,
        "severity": "critical",
    },
    {
        "name": "fallback_rate",
        "title": "Calls that fall back",
        "metric": "fallback_rate",
        "statistic": "rate",
        "window": "5m",
        "value": 0.05,
        "min_events": 20,
        "severity": "warning",
    },
    {
        "name": "concurrency",
        "title": "Bulkheads that are nearly full",
        "metric": "concurrency",
        "statistic": "now",
        "window": "",
        "value": 0.80,
        "min_events": 1,
        "severity": "info",
    },
)


def install(apps: Any, now: datetime) -> None:
    """Write missing rules; `apps` is Django's registry or a migration's."""
    rule = apps.get_model("slo", "ThresholdRule")
    for row in RULES:
        given = {**row, "comparison": ">", "built_in": True, "changed_at": now}
        rule.objects.get_or_create(name=row["name"], defaults=given)
