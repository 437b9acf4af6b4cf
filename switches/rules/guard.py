"""Asking the safety rules, inside the changing transaction: the publication row is locked already,
so nothing can change between the question and the commit."""

from datetime import datetime

from django.db.models import Q

from switches.models import Episode, Rule
from switches.rules import judge
from switches.rules.judge import Refusal, SafetyRule

__all__ = ["Refusal", "SafetyRule"]

EVERYTHING = 100  # per cent


def refusals_to_engage(switch_id: str) -> list[Refusal]:
    """Every rule that forbids to engage this switch as things stand; empty if none does."""
    over = _over(switch_id)
    return judge.refusals_to_engage(over, switch_id, engaged()) if over else []


def refusals_while_engaged(switch_id: str) -> list[Refusal]:
    """Every rule that would forbid to engage this switch, were it not engaged already."""
    over = _over(switch_id)
    return judge.refusals_to_engage(over, switch_id, engaged() - {switch_id}) if over else []


def refusals_to_release(switch_id: str) -> list[Refusal]:
    """Every rule that forbids to release this switch as things stand; empty if none does."""
    over = _over(switch_id)
    return judge.refusals_to_release(over, switch_id, stopping(switch_id)) if over else []


def refusals_to_undo(switch_id: str, since: datetime) -> list[Refusal]:
    """Every rule that was kept by another switch, released `since` this one was engaged.

    Otherwise an undo only brings back what was so before, which is no worse than now. One that let
    everything flow meanwhile, and is watched still, is released as far as that goes.
    """
    refused = refusals_to_release(switch_id)
    if not refused:
        return []
    is_gone = Q(ended_at__gte=since) | Q(ended_at__isnull=True, allow_percent__gte=EVERYTHING)
    ended = Episode.objects.filter(is_gone).exclude(switch_id=switch_id)
    gone = set(ended.values_list("switch_id", flat=True))
    missed = {rule.name for rule in rules() if judge.members(rule, gone)}
    return [refusal for refusal in refused if refusal.rule in missed]


def is_protected(switch_id: str) -> bool:
    """Whether a `protected` rule covers it: it is never released by itself, or by one person."""
    return judge.is_protected(rules(), switch_id)


def holding(switch_id: str, on_expiry: str) -> SafetyRule | None:
    """The rule under which the switch must not do this by itself at its expiry, if there is one."""
    return judge.holding(rules(), switch_id, on_expiry)


def rules() -> list[SafetyRule]:
    """Every rule there is, by name."""
    return [as_data(row) for row in Rule.objects.order_by("name")]


def as_data(row: Rule) -> SafetyRule:
    return SafetyRule(row.name, row.kind, tuple(row.switches), row.n)


def engaged() -> set[str]:
    """Every switch that is engaged or ramping."""
    return set(Episode.objects.filter(ended_at__isnull=True).values_list("switch_id", flat=True))


def stopping(asked: str = "") -> set[str]:
    """Every switch that still stops something: what a release is judged by.

    A ramp at its last step lets everything flow, so nobody can lean on its switch; were it counted,
    two of them could leave a rule with none. The switch that is asked about stands as it is.
    """
    present = Episode.objects.filter(ended_at__isnull=True)
    stops = Q(allow_percent__lt=EVERYTHING) | Q(switch_id=asked)
    return set(present.filter(stops).values_list("switch_id", flat=True))


def _over(switch_id: str) -> list[SafetyRule]:
    return [rule for rule in rules() if judge.covers(rule, switch_id)]
