"""Stored statuses of SLOs, and the actions that also run when an SLO is unknown (fail closed).

Each SLO has one status, which is replaced every minute.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import orjson

from controlplane.core.canonical import timestamp
from controlplane.core.sql import execute
from slo.alerts import actions, notifications
from slo.alerts.actions import LABELS, UNKNOWN_PREFIX, PlannedAction
from slo.arithmetic.evaluate import FIRING, UNKNOWN, RuleEvaluation
from slo.arithmetic.objective import PAGE
from slo.models import SloStatus

from .evaluator import EvaluatedSlo

# SLOs that were deleted meanwhile are left out. All rows are passed as one JSON text, because
# arrays of texts would take longer than the evaluation.
_UPSERT = """
    INSERT INTO slo_standing AS old (slo_id, minute, state, since, burn_rates, coverage, rules,
                                     remaining_ratio, exhausts_at)
    SELECT new.slo, %(minute)s, new.state, %(at)s, new.burn_rates, new.coverage, new.rules,
           new.remaining, new.exhausts
    FROM json_to_recordset(%(rows)s::json)
         AS new (slo bigint, state text, burn_rates jsonb, coverage jsonb, rules jsonb,
                 remaining float8, exhausts timestamptz)
    JOIN slo_slo ON slo_slo.id = new.slo
    ON CONFLICT (slo_id) DO UPDATE
    SET minute = excluded.minute, state = excluded.state, burn_rates = excluded.burn_rates,
        coverage = excluded.coverage, rules = excluded.rules,
        remaining_ratio = excluded.remaining_ratio, exhausts_at = excluded.exhausts_at,
        since = CASE WHEN old.state = excluded.state THEN least(old.since, excluded.since)
                     ELSE excluded.since END
"""

UNKNOWN_GRACE = timedelta(minutes=5)
"""Time for which an SLO must be unknown before an action that fails closed runs."""

RuleSince = Mapping[int, Mapping[str, datetime]]
"""The time since which each rule has been in its state, by SLO id and rule key."""


def load_states() -> dict[int, str]:
    return dict(SloStatus.objects.filter(slo__removed_at=None).values_list("pk", "state"))


def load_rule_since(evaluated: Sequence[EvaluatedSlo], at: datetime) -> RuleSince:
    """Return when each rule entered its state, by SLO id and rule key; `at` if it does so now."""
    before = SloStatus.objects.in_bulk([one.slo.pk for one in evaluated]) if evaluated else {}
    return {
        one.slo.pk: {
            result.rule.key: _state_since(result, before.get(one.slo.pk), at)
            for result in one.evaluation.rules
        }
        for one in evaluated
    }


def _state_since(result: RuleEvaluation, before: SloStatus | None, at: datetime) -> datetime:
    current = result.document()
    for rule in before.rules if before else ():
        if current.items() <= rule.items() and "since" in rule:
            return min(at, datetime.fromisoformat(rule["since"]))
    return at


def save_statuses(
    evaluated: Sequence[EvaluatedSlo], since: RuleSince, minute: int, at: datetime
) -> None:
    """Store the statuses of SLOs at the end of `minute`, which is the time `at`.

    For SLOs in `since`, the result of :func:`load_rule_since`, each rule is stored with the time at
    which it entered its state.
    """
    rows = [
        {
            "slo": one.slo.pk,
            "state": one.evaluation.present_state,
            "burn_rates": one.evaluation.burn_rates,
            "coverage": one.evaluation.coverage,
            "rules": [
                {**rule.document(), "since": timestamp(since[one.slo.pk][rule.rule.key])}
                if one.slo.pk in since
                else rule.document()
                for rule in one.evaluation.rules
            ],
            "remaining": one.evaluation.remaining_ratio,
            "exhausts": one.evaluation.exhausts_at,
        }
        for one in evaluated
    ]
    execute(_UPSERT, {"minute": minute, "at": at, "rows": orjson.dumps(rows).decode()})


def run_unknown_actions(
    evaluated: Sequence[EvaluatedSlo], since: RuleSince, at: datetime, now: datetime
) -> None:
    """Run the fail-closed actions of SLOs that have been unknown for `UNKNOWN_GRACE`.

    Their ramp holds and trip requests end once the SLO is known again. If the evaluation of an SLO
    failed, its actions neither start nor end.
    """
    minutes = int(UNKNOWN_GRACE.total_seconds() / 60)
    due: list[PlannedAction] = []
    active: list[PlannedAction] = []
    for one in evaluated:
        reason = f"The SLO {one.slo.name} had no data for {minutes} minutes"
        page = notifications.slo_path(one.slo)
        for index, action in enumerate(one.slo.actions):
            if action.get("on_unknown") != "act":
                continue
            key = f"{UNKNOWN_PREFIX}{one.slo.pk}.{index}"
            began = _unknown_since(action, one, since.get(one.slo.pk, {}))
            if began is None and not one.error:
                continue
            evidence = {"slo": one.slo.name, "unknown_since": timestamp(began or at)}
            time = f"@{began or at:%Y%m%dT%H%M}"
            active.append(PlannedAction(action, one.slo, key, reason, page, evidence, time))
            if began is not None and began <= at - UNKNOWN_GRACE:
                due.append(active[-1])
    actions.perform_actions(due, now)
    actions.end_all_but(active, now)


def _unknown_since(
    action: Mapping[str, object], one: EvaluatedSlo, since: Mapping[str, datetime]
) -> datetime | None:
    """Return since when an action's SLO has been unknown, None if it is known.

    Only rules that trigger the action matter: the SLO is unknown if one of them is unknown, and no
    rule of the same severity fires.
    """
    for label in LABELS[str(action.get("on", PAGE))]:
        rules = [rule for rule in one.evaluation.rules if rule.rule.severity == label]
        unknown = [rule.rule.key for rule in rules if rule.state == UNKNOWN]
        if unknown and not any(rule.state == FIRING for rule in rules):
            return min((since[key] for key in unknown if key in since), default=None)
    return None
