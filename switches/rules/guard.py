"""Evaluation of safety rules against the database, in the transaction of a change.

Callers hold the lock of the :class:`Publication` row, so the result stays true until the commit.
"""

from datetime import datetime

from django.db.models import Q

from switches.models import Episode, Rule, Switch
from switches.rules import evaluation
from switches.scopes import GLOBAL, immediate_release_needs_approval

from .evaluation import Refusal, SafetyRule

FULL_PERCENT = 100


def refusals_to_engage(switch_id: str) -> list[Refusal]:
    rules = evaluation.select_covering(list_rules(), switch_id)
    return evaluation.refusals_to_engage(rules, switch_id, engaged_switches()) if rules else []


def refusals_while_engaged(switch_id: str) -> list[Refusal]:
    """Return the safety rules' refusals to engage this engaged switch, as if it were released."""
    rules = evaluation.select_covering(list_rules(), switch_id)
    others = engaged_switches() - {switch_id} if rules else set()
    return evaluation.refusals_to_engage(rules, switch_id, others)


def refusals_to_release(switch_id: str) -> list[Refusal]:
    rules = evaluation.select_covering(list_rules(), switch_id)
    stopping = stopping_switches(switch_id) if rules else set()
    return evaluation.refusals_to_release(rules, switch_id, stopping)


def refusals_to_undo(switch_id: str, since: datetime) -> list[Refusal]:
    """Return the safety rules' refusals to undo the engage made at `since`.

    An undo restores the state before, so a rule refuses only if another of its switches was
    released after `since`. A switch whose ramp allows all traffic counts as released.
    """
    refused = refusals_to_release(switch_id)
    if not refused:
        return []
    is_gone = Q(ended_at__gte=since) | Q(ended_at__isnull=True, allow_percent__gte=FULL_PERCENT)
    ended = Episode.objects.filter(is_gone).exclude(switch_id=switch_id)
    released = set(ended.values_list("switch_id", flat=True))
    affected = {rule.name for rule in list_rules() if evaluation.list_members(rule, released)}
    return [refusal for refusal in refused if refusal.rule in affected]


def list_rules() -> list[SafetyRule]:
    return [to_safety_rule(row) for row in Rule.objects.order_by("name")]


def to_safety_rule(row: Rule) -> SafetyRule:
    return SafetyRule(row.name, row.kind, tuple(row.switches), row.n)


def engaged_switches() -> set[str]:
    return set(Episode.objects.filter(ended_at__isnull=True).values_list("switch_id", flat=True))


def stopping_switches(included: str = "") -> set[str]:
    """Return the ids of switches that block any traffic; a ramp at 100 % blocks none.

    The switch `included` counts even at 100 %.
    """
    present = Episode.objects.filter(ended_at__isnull=True)
    stops = Q(allow_percent__lt=FULL_PERCENT) | Q(switch_id=included)
    return set(present.filter(stops).values_list("switch_id", flat=True))


def needs_second_person(switch: Switch, *, at_once: bool) -> bool:
    """Return True if a release needs an approver other than the requester.

    The global switch always needs an approver. Segments and protected switches need one if
    `at_once`: immediate, or with a hasty plan (:func:`switches.ramps.plan.is_hasty`).
    """
    if switch.scope == GLOBAL.name:
        return True
    if not at_once or immediate_release_needs_approval(switch.scope):
        return at_once
    return evaluation.is_protected(list_rules(), switch.pk)
