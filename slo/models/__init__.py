"""Models of this app, gathered for Django."""

from .alerts import Alert, ThresholdRule
from .counters import (
    CounterHour,
    CounterMinute,
    DeferredUpdate,
    DeltaBatch,
    ReportedEvents,
    Series,
    Sli,
    StoredSample,
)
from .objective import EvaluatedMinute, Exclusion, Slo, SloStatus

__all__ = [
    "Alert",
    "CounterHour",
    "CounterMinute",
    "DeferredUpdate",
    "DeltaBatch",
    "EvaluatedMinute",
    "Exclusion",
    "ReportedEvents",
    "Series",
    "Sli",
    "Slo",
    "SloStatus",
    "StoredSample",
    "ThresholdRule",
]
