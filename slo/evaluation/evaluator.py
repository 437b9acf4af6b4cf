"""Evaluation of many SLOs: one query for all counters, then each SLO separately."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import structlog

from controlplane.core.clock import db_now
from slo.arithmetic import evaluate, windows
from slo.arithmetic.evaluate import Evaluation
from slo.arithmetic.minutes import due_minute, end_of, last_ended
from slo.arithmetic.objective import Objective
from slo.arithmetic.windows import CounterValues
from slo.counters import reader
from slo.models import Sli, Slo

from . import objective_loader

MAX_PERIOD = timedelta(days=366)
UNREADABLE_OBJECTIVE = Objective(target=Decimal("0.5"), window_days=1, rules=())
"""Placeholder for an objective that can't be parsed; its SLO is unknown."""
FAILED_EVENT = "slo.evaluation_failed"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class EvaluatedSlo:
    """An SLO and its evaluation; `error` is set if evaluating it failed."""

    slo: Slo
    evaluation: Evaluation
    error: str = ""


@dataclass(frozen=True)
class _Lookup:
    slo: Slo
    sli: int
    first: int | None
    objective: Objective
    minutes: set[int]


def evaluate_slos(slos: Sequence[Slo], at_minute: int) -> list[EvaluatedSlo]:
    """Evaluate SLOs at the end of a minute.

    An SLO whose evaluation fails is logged and becomes unknown; the other SLOs are not affected.
    """
    slis = _load_slis(slos)
    slo_ids = [slo.pk for slo in slos] if len(slos) == 1 else None
    excluded = objective_loader.load_exclusions(slo_ids, end_of(at_minute) - MAX_PERIOD)
    lookups: dict[int, _Lookup | str] = {}
    for slo in slos:
        sli, first = slis.get(slo.pk, (0, None))
        try:
            objective = objective_loader.load_objective(slo, excluded.get(slo.pk, ()))
            minutes = windows.needed_minutes(objective, at_minute)
        except Exception as error:
            log.exception(FAILED_EVENT, slo=slo.name)
            lookups[slo.pk] = _describe_error(error)
        else:
            lookups[slo.pk] = _Lookup(slo, sli, first, objective, minutes)
    counts = reader.load_counts(
        {
            one.sli: one.minutes
            for one in lookups.values()
            if isinstance(one, _Lookup) and one.first is not None and one.first <= at_minute
        }
    )
    return [_evaluate(slo, lookups[slo.pk], at_minute, counts) for slo in slos]


def load_status(slo: Slo, at: datetime | None = None) -> dict[str, Any]:
    """Return the body of `GET …/status`, computed from the counters.

    With `at`, the status is that of the last minute that had ended by then; without, that of the
    last minute due for evaluation.
    """
    minute = due_minute(db_now()) if at is None else last_ended(at)
    (one,) = evaluate_slos([slo], minute)
    return one.evaluation.document()


def _evaluate(
    slo: Slo, lookup: _Lookup | str, at_minute: int, counts: Mapping[tuple[int, int], CounterValues]
) -> EvaluatedSlo:
    if isinstance(lookup, str):
        return EvaluatedSlo(slo, evaluate.unknown_evaluation(UNREADABLE_OBJECTIVE), lookup)
    sli = lookup.sli
    try:
        found = evaluate.evaluate(
            lookup.objective, at_minute, lambda minute: counts[sli, minute], lookup.first
        )
    except Exception as error:
        log.exception(FAILED_EVENT, slo=slo.name)
        return EvaluatedSlo(
            slo, evaluate.unknown_evaluation(lookup.objective), _describe_error(error)
        )
    return EvaluatedSlo(slo, found)


def _load_slis(slos: Sequence[Slo]) -> dict[int, tuple[int, int | None]]:
    rows = Sli.objects.filter(slo__isnull=False)
    is_one = len(slos) == 1
    rows = rows.filter(slo=slos[0]) if is_one else rows.filter(slo__removed_at__isnull=True)
    return {slo: (pk, first) for slo, pk, first in rows.values_list("slo_id", "pk", "first")}


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
