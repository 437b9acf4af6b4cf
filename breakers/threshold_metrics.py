"""Threshold metrics of breakers and bulkheads."""

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
from .readings import openings, rates
from .states.minutes import MINUTES_KEPT

CALLS = (timedelta(minutes=1), MINUTES_KEPT)
"""Shortest and longest window; minute rows are deleted after the longest."""

THRESHOLD_METRICS.register(
    *(
        ThresholdMetric(
            f"{one.name}_rate",
            f"{one.name.capitalize()} rate",
            RATIO,
            ("rate",),
            one.about,
            one.read,
            windows=CALLS,
        )
        for one in (rates.TIMEOUTS, rates.RETRIES, rates.FALLBACKS)
    ),
    ThresholdMetric(
        "breaker_open",
        "Open breakers",
        COUNT,
        ("count",),
        "Number of instances in which the breaker of a dependency is open, or opened briefly.",
        openings.read_open_breakers,
        comparisons=(ABOVE, AT_LEAST),
        waiting=attention.open_weighty_names,
    ),
    ThresholdMetric(
        "concurrency",
        "Concurrency",
        RATIO,
        ("now",),
        "Calls in progress in a bulkhead divided by its limit, over all instances.",
        rates.read_concurrency,
    ),
)
