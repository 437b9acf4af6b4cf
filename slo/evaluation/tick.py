"""The periodic task that evaluates all SLOs, once for each minute, and updates their alerts."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import structlog
from django.db import transaction
from django.db.models import Exists, IntegerField, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Extract, Floor

from controlplane.core.canonical import timestamp_or_none
from controlplane.core.live.change_notices import notify_changed
from slo.alerts import lifecycle, notifications
from slo.arithmetic.evaluate import FIRING, UNKNOWN, RuleEvaluation, format_burn_rate
from slo.arithmetic.hysteresis import AlertKey, FiringRule
from slo.arithmetic.minutes import (
    EVALUATION_DELAY,
    MINUTE,
    MINUTE_SECONDS,
    MINUTES_A_DAY,
    due_minute,
    end_of,
)
from slo.arithmetic.objective import json_number
from slo.arithmetic.windows import WindowCounts
from slo.models import Alert, EvaluatedMinute, Slo

from . import evaluator, statuses
from .evaluator import EvaluatedSlo

MAX_MISSED_MINUTES = 60
"""Most missed minutes to evaluate afterwards; earlier ones are skipped."""
PURGE_EVERY_MINUTES = 60
KEPT_MINUTES = 35 * MINUTES_A_DAY
CLOCK_TOLERANCE_MINUTES = 5
"""Minutes that the last evaluated minute may be ahead of the due one.

If it is further ahead, the clock was set back, and evaluation restarts at the due minute.
"""
SLO_REMOVED = "Its SLO was removed."
RULE_REMOVED = "Its rule was removed from the SLO."

log = structlog.get_logger(__name__)
MAX_SERVICE_LENGTH = 60


def pending_slos(now: Combinable) -> QuerySet[Slo]:
    """Return all SLOs if the minute due at `now` (such as `Now()`) is not evaluated, else none."""
    seconds = Extract(now - Value(EVALUATION_DELAY), "epoch", tzinfo=UTC)
    due = Cast(Floor(seconds / Value(MINUTE_SECONDS)), IntegerField())
    evaluated_minutes = EvaluatedMinute.objects.filter(
        minute__gte=due, minute__lte=due + Value(CLOCK_TOLERANCE_MINUTES)
    )
    return Slo.objects.present().filter(~Exists(evaluated_minutes))


def evaluate_due_minutes(now: datetime) -> int:
    """Evaluate every due minute in order; return how many were evaluated, 0 without SLOs.

    Alerts open and resolve in each minute; notifications and actions follow after the last one.
    """
    due = due_minute(now)
    last = _last_minute()
    if last is not None and last > due + CLOCK_TOLERANCE_MINUTES:
        _forget_future_minutes(due)
        last = None
    begin = due if last is None else max(last + 1, due - MAX_MISSED_MINUTES)
    count = 0
    for minute in range(begin, due + 1):
        done = _evaluate_minute(minute, now, is_last=minute == due)
        if done is None:
            break  # Another process evaluates it, and continues with the later ones.
        count += done
    return count


@transaction.atomic
def _evaluate_minute(minute: int, now: datetime, *, is_last: bool) -> bool | None:
    """Evaluate all SLOs at the end of a minute, and update their alerts.

    Return True if it was evaluated, False if there are no SLOs or it was evaluated before, and None
    if another process is evaluating.
    """
    if not lifecycle.try_lock(lifecycle.EVALUATION_LOCK):
        return None
    last = _last_minute()
    if last is not None and last >= minute:
        return False
    began = time.monotonic()
    claimed = EvaluatedMinute.objects.create(minute=minute, evaluated_at=now)
    at = end_of(minute)
    slos = list(Slo.objects.present().order_by("pk"))
    evaluated = evaluator.evaluate_slos(slos, minute)
    states = statuses.load_states()
    # SLOs with actions that also run when the SLO is unknown.
    closed = [
        one
        for one in evaluated
        if any(action.get("on_unknown") == "act" for action in one.slo.actions)
    ]
    since = statuses.load_rule_since(closed, at)
    statuses.save_statuses(evaluated, since, minute, at)
    _update_burn_alerts(evaluated, at, missed=0 if last is None else minute - last - 1)
    if is_last:
        statuses.run_unknown_actions(closed, since, at, now)
        lifecycle.notify_and_act(Alert.Kind.BURN, now)
    changed_names = [
        one.slo.name for one in evaluated if states.get(one.slo.pk) != one.evaluation.present_state
    ]
    notify_changed("slo", *changed_names)
    if minute % PURGE_EVERY_MINUTES == 0:
        EvaluatedMinute.objects.filter(minute__lt=minute - KEPT_MINUTES).delete()
    claimed.slos, claimed.took_ms = len(evaluated), (time.monotonic() - began) * 1000
    claimed.save(update_fields=["slos", "took_ms"])
    return bool(evaluated)


@transaction.atomic
def _forget_future_minutes(minute: int) -> None:
    """Delete the records of minutes evaluated from `minute` on, after the clock was set back.

    They are evaluated again.
    """
    if lifecycle.try_lock(lifecycle.EVALUATION_LOCK):
        gone, _ = EvaluatedMinute.objects.filter(minute__gte=minute).delete()
        log.warning("slo.clock_set_back", minute=minute, minutes=gone)


def _last_minute() -> int | None:
    return EvaluatedMinute.objects.order_by("-minute").values_list("minute", flat=True).first()


def _update_burn_alerts(evaluated: Sequence[EvaluatedSlo], at: datetime, *, missed: int) -> None:
    """Open and resolve burn-rate alerts by the evaluation at `at`.

    `missed` is the number of minutes before it that were not evaluated.
    """
    firing: list[FiringRule] = []
    unknown: set[AlertKey] = set()
    rule_keys: set[AlertKey] = set()
    for one in evaluated:
        for rule in one.evaluation.rules:
            key = (rule.rule.key, one.slo.name)
            rule_keys.add(key)
            if rule.state == FIRING:
                firing.append(build_firing_rule(one, rule))
            elif rule.state == UNKNOWN:
                unknown.add(key)
    ids = {one.slo.name: one.slo.pk for one in evaluated}
    broken = {one.slo.name for one in evaluated if one.error}
    gone: dict[AlertKey, str] = {}
    rows = Alert.objects.filter(kind=Alert.Kind.BURN, resolved_at__isnull=True)
    for rule_key, subject, slo in rows.values_list("rule", "subject", "slo_id"):
        key = (rule_key, subject)
        if ids.get(subject) != slo:
            gone[key] = SLO_REMOVED  # Another SLO may have its name by now.
        elif subject in broken:
            unknown.add(key)
        elif key not in rule_keys:
            gone[key] = RULE_REMOVED
    lifecycle.update_alerts(
        kind=Alert.Kind.BURN,
        firing=firing,
        unknown=unknown,
        gone=gone,
        before=at - MINUTE,
        missed=missed * MINUTE,
        now=at,
    )


def build_firing_rule(evaluated: EvaluatedSlo, rule_evaluation: RuleEvaluation) -> FiringRule:
    slo, rule = evaluated.slo, rule_evaluation.rule
    found = evaluated.evaluation
    rates, left = found.burn_rates, found.remaining_ratio
    facts = {
        "budget_left": None if left is None else f"{round(left * 100, 1):g} %",
        "exhausts_at": timestamp_or_none(found.exhausts_at),
    }
    # In the past tense, because the sentence is read again long after the alert opened.
    message = (
        f"{slo.name} burned its error budget at {format_burn_rate(rates[rule.long])} the allowed"
        f" rate over {rule.long} and {format_burn_rate(rates[rule.short])} over {rule.short}"
        f" (limit {format_burn_rate(float(rule.burn_rate))})"
    )
    return FiringRule(
        rule=rule.key,
        subject=slo.name,
        service=slo.service[:MAX_SERVICE_LENGTH],
        severity=notifications.SEVERITIES[rule.severity],
        label=rule.severity,
        summary=message,
        path=notifications.slo_path(slo),
        evidence={
            "burn_rate": json_number(rule.burn_rate),
            "windows": {
                name: {**_event_counts(found.windows[name]), "burn_rate": rates[name]}
                for name in (rule.long, rule.short)
            },
            "target": f"{slo.target.normalize():f}",
            "remaining_ratio": left,
            "exhausts_at": timestamp_or_none(found.exhausts_at),
        },
        slo_id=slo.pk,
        facts={name: fact for name, fact in facts.items() if fact},
    )


def _event_counts(window: WindowCounts) -> dict[str, float]:
    exact = {"good": window.total - window.bad, "bad": window.bad, "total": window.total}
    counts = {name: one if isinstance(one, int) else float(one) for name, one in exact.items()}
    return {**counts, "coverage": window.coverage}
