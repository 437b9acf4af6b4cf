"""Models of this app, gathered for Django."""

from .alerts import Alert, ThresholdRule
from .counters import Batch, Delayed, Hour, Minute, Reported, Sample, Series, Sli
from .objective import Exclusion, Slo, Standing, Turn

__all__ = [
    "Alert",
    "Batch",
    "Delayed",
    "Exclusion",
    "Hour",
    "Minute",
    "Reported",
    "Sample",
    "Series",
    "Sli",
    "Slo",
    "Standing",
    "ThresholdRule",
    "Turn",
]
