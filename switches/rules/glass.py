"""Break-glass: going on at once against a rule, by naming it. Short, loud, and reviewed after."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import durations, reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import reviews
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import InvalidInput
from controlplane.core.outbox import services as outbox
from switches import facts
from switches.models import Episode, Switch
from switches.rules import guard
from switches.rules.errors import SafetyRefused
from switches.rules.judge import Refusal

MAX_DURATION = timedelta(hours=4)
"""An episode that began against a rule ends by then, whatever was asked."""
TWO_PERSON = "two-person"
"""The rule that a release waits for a second person; no safety rule goes by this name."""
MAX_NAMED = 50


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
    names = _plain([named] if isinstance(named, str) else named)
    errors: dict[str, list[str]] = {}
    if not names:
        errors["break_glass.rule"] = ["Name the rule that is overridden, or a list of them."]
    reason = given.get("reason")
    if not isinstance(reason, str):
        errors["break_glass.reason"] = ["Say why the rule has to yield."]
    elif problems := reasons.problems_with(reason):
        errors["break_glass.reason"] = problems
    if errors:
        raise InvalidInput(errors)
    return Glass(tuple(dict.fromkeys(names)), str(reason).strip())


def overridden(refusals: Sequence[Refusal], glass: Glass | None) -> tuple[str, ...]:
    """The rules in the way, all of them named by `glass`; none of them if nothing is in the way.

    Raises :class:`SafetyRefused` with those that nobody named.
    """
    left = [one for one in refusals if glass is None or not glass.names(one.rule)]
    if left:
        raise SafetyRefused(left, instead=_not_named(left, refusals, glass))
    return tuple(one.rule for one in refusals)


def told(reason: str, rules: Sequence[str], at: str, actor: Actor) -> dict[str, Any]:
    """What the episode keeps of it; `at` is `engage`, `extend` or `release`."""
    named = ", ".join(rules)
    return {"rule": named, "rules": list(rules), "reason": reason, "at": at, "by": actor.name}


def shout(
    switch: Switch,
    episode: Episode,
    broken: Mapping[str, Any],
    entry: AuditEntry,
    actor: Actor,
    now: datetime,
) -> Approval:
    """Tell everybody, and open the review that somebody else has to sign. After the audit row."""
    tell(switch, episode, broken, entry, actor, now)
    return reviews.open_review(
        rule=broken["rule"],
        reason=broken["reason"],
        target=switch.pk,
        diff={"episode": episode.pk, "did": broken["at"], "rules": broken["rules"]},
        actor=actor,
        now=now,
    )


def tell(
    switch: Switch,
    episode: Episode,
    broken: Mapping[str, Any],
    entry: AuditEntry,
    actor: Actor,
    now: datetime,
) -> None:
    """Tell everybody that it went on against a rule. After the audit row."""
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


def still_against(episode: Episode) -> tuple[str, ...]:
    """The rules that it was engaged against and that would refuse it still; none once they don't.

    While there are any, it is as short as it began: hours, never permanent.
    """
    broken = (episode.broke_glass or {}).get("rules", ())
    if not broken:
        return ()
    refusals = guard.refusals_while_engaged(episode.switch_id)
    return tuple(one.rule for one in refusals if one.rule in broken)


def short(rules: Sequence[str]) -> str:
    """What is told of an end that was moved up."""
    hours = durations.readable(MAX_DURATION)
    return f"Against {_quoted(rules)} it is engaged for {hours} at a time and never permanent."


def _quoted(rules: Sequence[str]) -> str:
    named = ", ".join(f"“{rule}”" for rule in rules)
    return f"the rule{'s' if len(rules) > 1 else ''} {named}"


def _plain(names: Any) -> list[str]:
    """The names as rules have them: composed, without space around; empty if they are no names."""
    if not isinstance(names, list) or len(names) > MAX_NAMED:
        return []
    if not all(isinstance(name, str) for name in names):
        return []
    plain = [unicodedata.normalize("NFC", name).strip() for name in names]
    return plain if all(plain) else []


def _not_named(left: Sequence[Refusal], refusals: Sequence[Refusal], glass: Glass | None) -> str:
    if glass is None:
        return ""
    names = ", ".join(f"“{one.rule}”" for one in left)
    if len(left) < len(refusals):
        return f"break_glass has to name {names} as well."
    return f"break_glass names {', '.join(glass.rules)}, but what refuses is {names}."
