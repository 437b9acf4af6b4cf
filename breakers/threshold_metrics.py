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

RATES = (
    (
        "timeout_rate",
        "Timeout rate",
        "Of the calls of a dependency, those that timed out.",
        rates.read_timeouts,
    ),
    (
        "retry_rate",
        "Retry rate",
        "Of the calls of a dependency, those that were repeats.",
        rates.read_retries,
    ),
    (
        "fallback_rate",
        "Fallback rate",
        "Of what was asked of a dependency, what was answered by its fallback.",
        rates.read_fallbacks,
    ),
)

THRESHOLD_METRICS.register(
    *(
        ThresholdMetric(name, title, RATIO, ("rate",), about, read, windows=CALLS)
        for name, title, about, read in RATES
    ),
    ThresholdMetric(
        "breaker_open",
        "Open breakers",
        COUNT,
        ("count",),
        "The instances in which the breaker of a dependency is open, or opened for a moment.",
        openings.read_open_breakers,
        comparisons=(ABOVE, AT_LEAST),
        waiting=attention.open_weighty_names,
    ),
    ThresholdMetric(
        "concurrency",
        "Concurrency",
        RATIO,
        ("now",),
        "Calls in flight in a bulkhead, over all instances, for each that is allowed.",
        rates.read_concurrency,
    ),
)
