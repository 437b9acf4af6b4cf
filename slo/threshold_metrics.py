"""Latency percentiles as a metric for threshold rules."""

from datetime import timedelta

from controlplane.core.threshold_metrics import (
    ABOVE,
    AT_MOST,
    MILLISECONDS,
    THRESHOLD_METRICS,
    ThresholdMetric,
)
from slo.thresholds import latency_measure

THRESHOLD_METRICS.register(
    ThresholdMetric(
        name="latency_ms",
        title="Latency",
        unit=MILLISECONDS,
        statistics=tuple(latency_measure.SHARES),
        about="A percentile of the latencies that a service has pushed as a histogram; one that "
        "has an edge at the limit is judged exactly.",
        read=latency_measure.read_latency,
        comparisons=(ABOVE, AT_MOST),
        windows=(timedelta(minutes=1), timedelta(days=30)),
        parts="metric",
    )
)
