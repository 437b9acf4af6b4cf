"""Burn-rate rules that fire, as alerts."""

from typing import Any

from controlplane.core.canonical import timestamp
from slo.alerts import notifications
from slo.arithmetic.evaluate import RuleEvaluation
from slo.arithmetic.hysteresis import FiringRule
from slo.arithmetic.objective import json_number

from .evaluator import EvaluatedSlo

MAX_SERVICE_LENGTH = 60


def build_firing_rule(evaluated: EvaluatedSlo, rule_evaluation: RuleEvaluation) -> FiringRule:
    """Return the alert content of a rule that fires."""
    slo, rule = evaluated.slo, rule_evaluation.rule
    rates = evaluated.evaluation.burn_rates
    said = (
        f"{slo.name} burns its error budget {_times(rates[rule.long])} as fast as it may over"
        f" {rule.long}, {_times(rates[rule.short])} over {rule.short}"
        f" (more than {json_number(rule.burn_rate):g})"
    )
    return FiringRule(
        rule=rule.key,
        subject=slo.name,
        service=slo.service[:MAX_SERVICE_LENGTH],
        severity=notifications.SEVERITIES[rule.severity],
        label=rule.severity,
        said=said,
        path=notifications.slo_path(slo),
        evidence=_evidence(evaluated, rule_evaluation),
        slo_id=slo.pk,
        facts=_facts(evaluated),
    )


def _evidence(evaluated: EvaluatedSlo, rule_evaluation: RuleEvaluation) -> dict[str, Any]:
    """Return the counts of both windows, and the budget that is left."""
    found, rule = evaluated.evaluation, rule_evaluation.rule
    return {
        "burn_rate": json_number(rule.burn_rate),
        "windows": {
            name: {
                "good": _number(window.total - window.bad),
                "bad": _number(window.bad),
                "total": _number(window.total),
                "burn_rate": found.burn_rates[name],
                "coverage": window.coverage,
            }
            for name in (rule.long, rule.short)
            for window in (found.windows[name],)
        },
        "target": f"{evaluated.slo.target.normalize():f}",
        "remaining_ratio": found.remaining_ratio,
        "exhausts_at": None if found.exhausts_at is None else timestamp(found.exhausts_at),
    }


def _facts(evaluated: EvaluatedSlo) -> dict[str, Any]:
    left, exhausts_at = evaluated.evaluation.remaining_ratio, evaluated.evaluation.exhausts_at
    return {
        **({} if left is None else {"budget_left": f"{round(left * 100, 1):g} %"}),
        **({} if exhausts_at is None else {"exhausts_at": timestamp(exhausts_at)}),
    }


def _times(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:.3g} times"


def _number(exact: Any) -> int | float:
    """Return an exact number as JSON, which has no fractions."""
    return exact if isinstance(exact, int) else float(exact)
