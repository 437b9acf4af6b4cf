"""The built-in threshold rules of a new installation."""

from datetime import datetime
from typing import Any

FIELDS = ("name", "title", "metric", "statistic", "window", "value", "min_events", "severity")
# fmt: off
_ROWS: tuple[tuple[str | float, ...], ...] = (
    ("e2e_latency", "Slow responses: 95th percentile, end to end",
     "latency_ms:e2e", "p95", "5m", 5000.0, 20, "warning"),
    ("timeout_rate", "Calls that time out", "timeout_rate", "rate", "5m", 0.01, 20, "warning"),
    ("retry_rate", "Calls that are retries", "retry_rate", "rate", "5m", 0.10, 20, "info"),
    ("breaker_open", "A breaker has tripped", "breaker_open", "count", "", 0.0, 1, "warning"),
    ("switch_engaged", "A switch is engaged", "switch_engaged", "now", "", 0.0, 1, "critical"),
    ("fallback_rate", "Calls that fall back", "fallback_rate", "rate", "5m", 0.05, 20, "warning"),
    ("concurrency", "Bulkheads that are nearly full", "concurrency", "now", "", 0.80, 1, "info"),
)
# fmt: on
RULES: tuple[dict[str, Any], ...] = tuple(dict(zip(FIELDS, row, strict=True)) for row in _ROWS)


def install_rules(apps: Any, now: datetime) -> None:
    """Create the missing built-in rules; `apps` is Django's app registry, or a migration's."""
    rule = apps.get_model("slo", "ThresholdRule")
    for row in RULES:
        defaults = {**row, "comparison": ">", "built_in": True, "changed_at": now}
        rule.objects.get_or_create(name=row["name"], defaults=defaults)
