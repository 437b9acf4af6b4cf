"""Metrics of breakers and bulkheads for threshold rules."""

from datetime import timedelta

from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_LEAST,
    COUNT,
    RATIO,
    THRESHOLD_METRICS,
    ThresholdMetric,
)

from . import attention
from .readings import bulkheads, openings, rates
from .states.minutes import MINUTES_KEPT

CALLS = (timedelta(minutes=1), MINUTES_KEPT)
"""Windows of calls: as long as minutes are kept."""

for name, title, about, read in (
    (
        "timeout_rate",
        "Timeout rate",
        "Of the calls of a dependency, those that timed out.",
        rates.timeouts,
    ),
    (
        "retry_rate",
        "Retry rate",
        "Of the calls of a dependency, those that were repeats.",
        rates.retries,
    ),
    (
        "fallback_rate",
        "Fallback rate",
        "Of what was asked of a dependency, what was answered by its fallback.",
        rates.fallbacks,
    ),
):
    THRESHOLD_METRICS.register(
        ThresholdMetric(
            name=name,
            title=title,
            unit=RATIO,
            statistics=("rate",),
            about=about,
            read=read,
            windows=CALLS,
        )
    )
THRESHOLD_METRICS.register(
    ThresholdMetric(
        name="breaker_open",
        title="Open breakers",
        unit=COUNT,
        statistics=("count",),
        about="The instances in which the breaker of a dependency is open, or opened for a moment.",
        read=openings.read_open_breakers,
        comparisons=(ABOVE, AT_LEAST),
        waiting=attention.open_weighty_names,
    )
)
THRESHOLD_METRICS.register(
    ThresholdMetric(
        name="concurrency",
        title="Concurrency",
        unit=RATIO,
        statistics=("now",),
        about="Calls in flight in a bulkhead, over all instances, for each that is allowed.",
        read=bulkheads.read_concurrency,
    )
)
