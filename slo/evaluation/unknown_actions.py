"""Actions that fail closed: they run once an SLO has been unknown for a while."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from controlplane.core.canonical import timestamp
from slo.alerts import actions, notifications
from slo.alerts.actions import LABELS, UNKNOWN_PREFIX, PlannedAction
from slo.arithmetic.evaluate import FIRING, UNKNOWN
from slo.arithmetic.objective import PAGE
from slo.models import Slo

from .evaluator import EvaluatedSlo
from .statuses import RuleSince

UNKNOWN_GRACE = timedelta(minutes=5)
"""Time for which an SLO must be unknown before an action that fails closed runs."""


def fails_closed(slo: Slo) -> bool:
    """Return True if the SLO has an action that also runs when the SLO is unknown."""
    return any(action.get("on_unknown") == "act" for action in slo.actions)


def run_unknown_actions(
    evaluated: Sequence[EvaluatedSlo], since: RuleSince, at: datetime, now: datetime
) -> None:
    """Run the actions of SLOs that have been unknown for `UNKNOWN_GRACE`.

    Holds and trip requests end once their SLO is known again. If the evaluation of an SLO failed,
    its actions neither start nor end.
    """
    minutes = int(UNKNOWN_GRACE.total_seconds() / 60)
    due: list[PlannedAction] = []
    active: list[PlannedAction] = []
    for one in evaluated:
        said = f"Nothing has been known of the SLO {one.slo.name} for {minutes} minutes"
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
            active.append(PlannedAction(action, one.slo, key, said, page, evidence, time))
            if began is not None and began <= at - UNKNOWN_GRACE:
                due.append(active[-1])
    actions.perform_actions(due, now)
    actions.end_all_but(active, now)


def _unknown_since(
    action: Mapping[str, object], one: EvaluatedSlo, since: Mapping[str, datetime]
) -> datetime | None:
    """Return since when an SLO has been unknown for an action, None if it is known.

    It is unknown if a rule that triggers the action is unknown, and no rule of that severity fires.
    """
    for label in LABELS[str(action.get("on", PAGE))]:
        rules = [rule for rule in one.evaluation.rules if rule.rule.severity == label]
        unknown = [rule.rule.key for rule in rules if rule.state == UNKNOWN]
        if unknown and not any(rule.state == FIRING for rule in rules):
            return min((since[key] for key in unknown if key in since), default=None)
    return None
