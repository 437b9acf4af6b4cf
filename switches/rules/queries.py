"""Safety rules with their status."""

from collections.abc import Collection
from dataclasses import dataclass

from switches.models import Rule, Switch
from switches.rules import evaluation, guard
from switches.rules.proposal import RulePreview, preview_rule

from .evaluation import SafetyRule

MAX_SHOWN_MEMBERS = 50
MAX_KNOWN_SWITCHES = 50_000


@dataclass(frozen=True)
class SafetyRuleStatus:
    """A safety rule with the switches it covers, those engaged among them, and its violation.

    `members` and `engaged` list the first 50 of each.
    """

    row: Rule
    rule: SafetyRule
    members: tuple[str, ...]
    members_total: int
    engaged: tuple[str, ...]
    engaged_total: int
    violation: str
    at_its_limit: bool

    @property
    def sentence(self) -> str:
        return evaluation.describe_rule(self.rule)

    @property
    def is_violated(self) -> bool:
        return bool(self.violation)

    @property
    def condition(self) -> str:
        """Return `broken` if violated, `limit` if one more change would violate it, else `kept`."""
        if self.violation:
            return "broken"
        return "limit" if self.at_its_limit else "kept"


def read_statuses(rows: Collection[Rule]) -> list[SafetyRuleStatus]:
    """Return the statuses of these rules, in two queries."""
    if not rows:
        return []
    engaged, known = guard.engaged_switches(), list_known_switches()
    statuses = []
    for row in rows:
        rule = guard.to_safety_rule(row)
        group = evaluation.list_members(rule, known)
        stopped = evaluation.list_members(rule, engaged)
        status = SafetyRuleStatus(
            row=row,
            rule=rule,
            members=tuple(group[:MAX_SHOWN_MEMBERS]),
            members_total=len(group),
            engaged=tuple(stopped[:MAX_SHOWN_MEMBERS]),
            engaged_total=len(stopped),
            violation=evaluation.describe_violation(rule, engaged),
            at_its_limit=evaluation.is_at_limit(rule, engaged),
        )
        statuses.append(status)
    return statuses


def preview_now(rule: SafetyRule) -> RulePreview:
    return preview_rule(rule, guard.engaged_switches(), list_known_switches())


def list_known_switches() -> list[str]:
    """Return the ids of registered switches, at most 50,000."""
    return list(Switch.objects.order_by("pk").values_list("pk", flat=True)[:MAX_KNOWN_SWITCHES])
