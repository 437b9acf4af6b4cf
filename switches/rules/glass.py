"""Break-glass: going on at once against a rule, by naming it. Short, loud, and reviewed after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals import reviews
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import InvalidInput
from controlplane.core.outbox import services as outbox
from switches import facts, reasons
from switches.models import Episode, Switch
from switches.rules.errors import SafetyRefused
from switches.rules.judge import Refusal

LONGEST = timedelta(hours=4)
"""An episode that began against a rule ends by then, whatever was asked."""
TWO_PERSON = "two-person"
"""The rule that a release waits for a second person; no safety rule goes by this name."""
MOST_NAMED = 50


@dataclass(frozen=True)
class Glass:
    """The rules somebody is ready to override, and why."""

    rules: tuple[str, ...]
    reason: str

    def names(self, rule: str) -> bool:
        return rule in self.rules


def read(given: Mapping[str, Any] | None) -> Glass | None:
    """`{"rule", "reason"}` as it was sent; `rule` is a name or a list of names.

    Raises :class:`InvalidInput`: the reason is held to what a reason to stop is held to.
    """
    if given is None:
        return None
    named = given.get("rule")
    names = [named] if isinstance(named, str) else named
    errors: dict[str, list[str]] = {}
    if not _are_names(names):
        errors["break_glass.rule"] = ["Name the rule that is overridden, or a list of them."]
    reason = given.get("reason")
    if not isinstance(reason, str):
        errors["break_glass.reason"] = ["Say why the rule has to yield."]
    elif problems := reasons.problems_with(reason):
        errors["break_glass.reason"] = problems
    if errors:
        raise InvalidInput(errors)
    return Glass(tuple(dict.fromkeys(names)), str(reason).strip())  # type: ignore[arg-type]


def overridden(refusals: Sequence[Refusal], glass: Glass | None) -> tuple[str, ...]:
    """The rules in the way, all of them named by `glass`; none of them if nothing is in the way.

    Raises :class:`SafetyRefused` with those that nobody named.
    """
    left = [one for one in refusals if glass is None or not glass.names(one.rule)]
    if left:
        raise SafetyRefused(left, instead=_not_named(left, refusals, glass))
    return tuple(one.rule for one in refusals)


def told(glass: Glass, rules: Sequence[str], at: str) -> dict[str, Any]:
    """What the episode keeps of it; `at` is `engage` or `release`."""
    return {"rule": ", ".join(rules), "rules": list(rules), "reason": glass.reason, "at": at}


def shout(
    switch: Switch,
    episode: Episode,
    broken: Mapping[str, Any],
    entry: AuditEntry,
    actor: Actor,
    now: datetime,
) -> Approval:
    """Tell everybody, and open the review that somebody else has to sign. After the audit row."""
    outbox.announce(
        event="switch.broke_glass",
        event_key=f"audit:{entry.pk}:glass",
        scope=switch.scope,
        subject=f"episode:{episode.pk}",
        facts=facts.message(
            switch, episode, actor, rule=broken["rule"], said=broken["reason"], did=broken["at"]
        ),
        now=now,
    )
    return reviews.open_review(
        rule=broken["rule"],
        reason=broken["reason"],
        target=switch.pk,
        diff={"episode": episode.pk, "did": broken["at"], "rules": broken["rules"]},
        actor=actor,
        now=now,
    )


def _are_names(names: Any) -> bool:
    return (
        isinstance(names, list)
        and 0 < len(names) <= MOST_NAMED
        and all(isinstance(name, str) and name.strip() for name in names)
    )


def _not_named(left: Sequence[Refusal], refusals: Sequence[Refusal], glass: Glass | None) -> str:
    if glass is None:
        return ""
    names = ", ".join(f"“{one.rule}”" for one in left)
    if len(left) < len(refusals):
        return f"break_glass has to name {names} as well."
    return f"break_glass names {', '.join(glass.rules)}, but what refuses is {names}."
