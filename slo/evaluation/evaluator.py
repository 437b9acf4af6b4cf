"""Evaluation of many SLOs: one query for all counters, then each SLO separately."""

from collections.abc import Sequence
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
from slo.counters import reader
from slo.models import Sli, Slo

from . import objective_loader

MAX_PERIOD = timedelta(days=366)
UNREADABLE_OBJECTIVE = Objective(target=Decimal("0.5"), window_days=1, rules=())
"""Placeholder for an objective that can't be parsed; its SLO is unknown."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class EvaluatedSlo:
    """An SLO and its evaluation; `error` is set if evaluating it failed."""

    slo: Slo
    evaluation: Evaluation
    error: str = ""


def evaluate_slos(slos: Sequence[Slo], at_minute: int) -> list[EvaluatedSlo]:
    """Evaluate SLOs at the end of a minute; an SLO whose evaluation fails is unknown."""
    slis = _load_slis(slos)
    slo_ids = [slo.pk for slo in slos] if len(slos) == 1 else None
    excluded = objective_loader.load_exclusions(slo_ids, end_of(at_minute) - MAX_PERIOD)
    objectives: dict[int, Objective] = {}
    needed: dict[int, set[int]] = {}
    slice_targets: dict[int, Decimal | None] = {}
    errors: dict[int, str] = {}
    for slo in slos:
        sli, first = slis.get(slo.pk, (0, None))
        try:
            objective = objective_loader.load_objective(slo, excluded.get(slo.pk, ()))
            minutes = windows.needed_minutes(objective, at_minute)
        except Exception as error:
            errors[slo.pk] = _log_error(slo, error)
            continue
        objectives[slo.pk] = objective
        if first is not None and first <= at_minute:
            needed[sli] = minutes
            slice_targets[sli] = objective.slice_target
    counts = reader.load_counts(needed, slice_targets)

    def evaluate_slo(slo: Slo) -> EvaluatedSlo:
        objective = objectives.get(slo.pk)
        if objective is None:
            unknown = evaluate.unknown_evaluation(UNREADABLE_OBJECTIVE)
            return EvaluatedSlo(slo, unknown, errors[slo.pk])
        sli, first = slis.get(slo.pk, (0, None))
        try:
            found = evaluate.evaluate(
                objective, at_minute, lambda minute: counts[sli, minute], first
            )
        except Exception as error:
            unknown = evaluate.unknown_evaluation(objective)
            return EvaluatedSlo(slo, unknown, _log_error(slo, error))
        return EvaluatedSlo(slo, found)

    return [evaluate_slo(slo) for slo in slos]


def load_status(slo: Slo, at: datetime | None = None) -> dict[str, Any]:
    """Evaluate an SLO now, and return its status as the body of `GET …/status`.

    It is the status at the last minute that had ended by `at`; without `at`, at the last minute
    that is due for evaluation.
    """
    minute = due_minute(db_now()) if at is None else last_ended(at)
    (one,) = evaluate_slos([slo], minute)
    return one.evaluation.document()


def _load_slis(slos: Sequence[Slo]) -> dict[int, tuple[int, int | None]]:
    rows = Sli.objects.filter(slo__isnull=False)
    is_one = len(slos) == 1
    rows = rows.filter(slo=slos[0]) if is_one else rows.filter(slo__removed_at__isnull=True)
    return {slo: (pk, first) for slo, pk, first in rows.values_list("slo_id", "pk", "first")}


def _log_error(slo: Slo, error: Exception) -> str:
    log.error("slo.evaluation_failed", slo=slo.name, exc_info=error)
    return f"{type(error).__name__}: {error}"
