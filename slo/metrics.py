"""Prometheus metrics of SLOs, from their stored statuses."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from prometheus_client.core import GaugeMetricFamily, Metric

from controlplane.core.compiled_query import fetch_rows
from controlplane.core.metrics import DATABASE_METRICS
from slo.models import Alert, SloStatus, ThresholdRule

FRESH_FOR = timedelta(minutes=10)
"""Age of a stored status above which its SLO is reported as unknown."""
STATES = ("ok", "firing", "unknown")


@DATABASE_METRICS.add()
def collect_statuses(now: datetime) -> Iterator[Metric]:
    """Yield the state of each SLO, and its burn rates and remaining budget where known."""
    rates = GaugeMetricFamily(
        "switchgear_slo_burn_rate",
        "How many times as fast as allowed an SLO's error budget is spent; absent if unknown.",
        labels=["slo", "window"],
    )
    budgets = GaugeMetricFamily(
        "switchgear_slo_budget_remaining_ratio",
        "Remaining share of an SLO's error budget, 1 to 0; negative if overspent.",
        labels=["slo"],
    )
    states = GaugeMetricFamily(
        "switchgear_slo_state",
        "1 for the SLO's current state (ok, firing, unknown), 0 for the others.",
        labels=["slo", "state"],
    )
    rows = SloStatus.objects.filter(slo__removed_at__isnull=True).order_by("pk")
    oldest = (now - FRESH_FOR).timestamp() / 60
    for name, minute, state, burn_rates, remaining in rows.values_list(
        "slo__name", "minute", "state", "burn_rates", "remaining_ratio"
    ):
        is_fresh = minute >= oldest
        for one in STATES:
            states.add_metric([name, one], int(one == (state if is_fresh else "unknown")))
        if not is_fresh:
            continue
        for window, rate in burn_rates.items():
            if rate is not None:
                rates.add_metric([name, window], rate)
        if remaining is not None:
            budgets.add_metric([name], remaining)
    yield from (rates, budgets, states)


@DATABASE_METRICS.add()
def collect_alerts(now: datetime) -> Iterator[Metric]:
    """Yield the number of open alerts by kind and severity, also where it is 0."""
    firing = GaugeMetricFamily(
        "switchgear_alerts_open", "Open alerts.", labels=["kind", "severity"]
    )
    counts = {(kind, severity): number for kind, severity, number in fetch_rows(_count_open)}
    for kind in Alert.Kind.values:
        for severity in ("critical", "warning", "info"):
            firing.add_metric([kind, severity], counts.get((kind, severity), 0))
    yield firing


@DATABASE_METRICS.add()
def collect_thresholds(now: datetime) -> Iterator[Metric]:
    """Yield the number of open alerts of each enabled threshold rule, also where it is 0."""
    counts = dict.fromkeys((name for (name,) in fetch_rows(_enabled_rules)), 0)
    counts |= dict(fetch_rows(_count_open_by_rule))
    family = GaugeMetricFamily(
        "switchgear_threshold_alerts", "Open alerts of threshold rules.", labels=["rule"]
    )
    for name, number in counts.items():
        family.add_metric([name], number)
    yield family


def _count_open() -> QuerySet[Alert, tuple[Any, ...]]:
    rows = Alert.objects.filter(resolved_at__isnull=True).order_by()
    return rows.values_list("kind", "severity").annotate(Count("pk"))


def _count_open_by_rule() -> QuerySet[Alert, tuple[Any, ...]]:
    live = Alert.objects.filter(kind=Alert.Kind.THRESHOLD, resolved_at__isnull=True).order_by()
    return live.values_list("rule").annotate(Count("pk"))


def _enabled_rules() -> QuerySet[ThresholdRule, tuple[Any, ...]]:
    return ThresholdRule.objects.filter(is_enabled=True).order_by("name").values_list("name")
