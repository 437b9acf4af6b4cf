"""The rules as they stand: who is of each group, how many are engaged, what waits for approval."""

from collections.abc import Collection
from dataclasses import dataclass

from controlplane.core.approvals.models import Approval
from switches.models import Rule, Switch
from switches.rules import guard, judge
from switches.rules.judge import SafetyRule
from switches.rules.proposal import Outlook, outlook

MEMBERS_SHOWN = 50
MAX_KNOWN = 50_000


@dataclass(frozen=True)
class Standing:
    """A rule, and how things stand with it."""

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
        return judge.sentence(self.rule)

    @property
    def condition(self) -> str:
        """`broken`, `limit` or `kept`; a rule that only protects is always kept."""
        if self.violation:
            return "broken"
        return "limit" if self.at_its_limit else "kept"


def standing(rows: Collection[Rule]) -> list[Standing]:
    """How things stand with these rules: two queries, however many rules there are."""
    if not rows:
        return []
    engaged, known = guard.engaged(), known_switches()
    return [_standing(row, engaged, known) for row in rows]


def outlook_of(rule: SafetyRule) -> Outlook:
    """What a rule would do if it were in force now."""
    return outlook(rule, guard.engaged(), known_switches())


def pending() -> list[Approval]:
    """Changes of rules that wait for an approver."""
    waiting = Approval.objects.filter(kind=Approval.Kind.RULE_CHANGE, state="pending")
    return list(waiting.order_by("id"))


def known_switches() -> list[str]:
    """The switches that were ever registered, the first of a great many."""
    return list(Switch.objects.order_by("pk").values_list("pk", flat=True)[:MAX_KNOWN])


def _standing(row: Rule, engaged: Collection[str], known: Collection[str]) -> Standing:
    rule = guard.as_data(row)
    group, stopped = judge.members(rule, known), judge.members(rule, engaged)
    return Standing(
        row=row,
        rule=rule,
        members=tuple(group[:MEMBERS_SHOWN]),
        members_total=len(group),
        engaged=tuple(stopped[:MEMBERS_SHOWN]),
        engaged_total=len(stopped),
        violation=judge.violation(rule, engaged),
        at_its_limit=judge.is_at_its_limit(rule, engaged),
    )
