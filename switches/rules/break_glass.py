"""Break-glass: overrides of named safety rules, limited to hours, announced and reviewed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from unicodedata import normalize

from controlplane.core import canonical, durations, reasons
from controlplane.core.actors import Actor
from controlplane.core.approvals import reviews
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.outbox import services as outbox
from switches.episodes import changes
from switches.models import Episode, Switch

from . import guard
from .evaluation import Refusal

MAX_DURATION = timedelta(hours=4)
"""Maximum duration of an episode that overrides a rule."""
TWO_PERSON = "two-person"
"""Reserved rule name for the second person of a release."""
OWNERSHIP = "ownership"
"""Reserved rule name for the release of what another team owns."""
RESERVED_NAMES = {TWO_PERSON: "two people must release", OWNERSHIP: "only the owner releases"}
MAX_NAMED = 50


class SafetyRefused(Conflict):
    """Raised if safety rules refuse a change.

    The response lists all `refusals`; its `rule` and `would_pass` are those of the first. `instead`
    says why an attempt to override the rules failed.
    """

    slug = "safety-refused"
    title = "A safety rule refuses this"

    def __init__(self, refusals: Sequence[Refusal], *, instead: str = "") -> None:
        first = refusals[0]
        text = " ".join(
            f"“{refusal.rule}” refuses: {refusal.detail} {refusal.would_pass}"
            for refusal in refusals
        )
        super().__init__(
            f"{instead} {text}".strip(),
            rule=first.rule,
            would_pass=first.would_pass,
            refusals=[asdict(refusal) for refusal in refusals],
        )
        self.refusals = list(refusals)


@dataclass(frozen=True)
class RuleOverride:
    """The names of the safety rules to override, and the reason."""

    rules: tuple[str, ...]
    reason: str


def read_override(given: Mapping[str, Any] | None) -> RuleOverride | None:
    """Return the validated `{"rule", "reason"}`, where `rule` is a rule's name or a list of names.

    Raise :class:`InvalidInput` for missing names, or a reason too vague to engage a switch.
    """
    if given is None:
        return None
    rule_field = given.get("rule")
    listed = [rule_field] if isinstance(rule_field, str) else rule_field
    names: list[str] = []
    if isinstance(listed, list) and all(isinstance(name, str) for name in listed):
        names = [normalize("NFC", name).strip() for name in listed]
    errors: dict[str, list[str]] = {}
    if not 1 <= len(names) <= MAX_NAMED or not all(names):
        errors["break_glass.rule"] = ["Name the rule that is overridden, or a list of them."]
    reason = given.get("reason")
    if not isinstance(reason, str):
        errors["break_glass.reason"] = ["Explain why the rule must be overridden."]
    elif problems := reasons.find_reason_problems(reason):
        errors["break_glass.reason"] = problems
    if errors:
        raise InvalidInput(errors)
    return RuleOverride(tuple(dict.fromkeys(names)), str(reason).strip())


def override_refusals(
    refusals: Sequence[Refusal], override: RuleOverride | None
) -> tuple[str, ...]:
    """Return the names of the refusing safety rules if `override` names all of them.

    Otherwise raise :class:`SafetyRefused` with those it doesn't name.
    """
    overridden = override.rules if override else ()
    unnamed = [refusal for refusal in refusals if refusal.rule not in overridden]
    if not unnamed:
        return tuple(refusal.rule for refusal in refusals)
    names = ", ".join(f"“{refusal.rule}”" for refusal in unnamed)
    if override is None:
        raise SafetyRefused(unnamed)
    if len(unnamed) < len(refusals):
        raise SafetyRefused(unnamed, instead=f"break_glass must also name {names}.")
    instead = f"break_glass names {', '.join(overridden)}, but the refusing rules are {names}."
    raise SafetyRefused(unnamed, instead=instead)


def override_record(reason: str, rules: Sequence[str], at: str, actor: Actor) -> dict[str, Any]:
    """Return an override's record for `broke_glass`; `at` is `engage`, `extend` or `release`."""
    named = ", ".join(rules)
    return {"rule": named, "rules": list(rules), "reason": reason, "at": at, "by": actor.name}


def notify_break_glass(
    switch: Switch,
    episode: Episode,
    override_entry: Mapping[str, Any],
    actor: Actor,
    now: datetime,
) -> Approval:
    """Announce an override of safety rules, and return its new, open review."""
    outbox.announce(
        event="switch.broke_glass",
        event_key=message_key(episode, now),
        scope=switch.scope,
        subject=f"episode:{episode.pk}",
        resource=switch.pk,
        facts=changes.message_facts(
            switch,
            episode,
            actor,
            rule=override_entry["rule"],
            said=override_entry["reason"],
            did=override_entry["at"],
        ),
        now=now,
    )
    return reviews.open_review(
        rule=override_entry["rule"],
        reason=override_entry["reason"],
        target=switch.pk,
        diff={"episode": episode.pk, "did": override_entry["at"], "rules": override_entry["rules"]},
        actor=actor,
        now=now,
    )


def message_key(episode: Episode, at: datetime) -> str:
    """Return the event key of the messages about an override of safety rules at the time `at`."""
    return f"episode:{episode.pk}:glass:{canonical.timestamp(at)}"


def violated_rules(episode: Episode) -> tuple[str, ...]:
    """Return the overridden rules that would still refuse to engage the switch.

    If there are any, the episode is limited to 4 hours (`MAX_DURATION`) and can't be permanent.
    """
    overridden = (episode.broke_glass or {}).get("rules", ())
    refusals = guard.refusals_while_engaged(episode.switch_id) if overridden else []
    return tuple(refusal.rule for refusal in refusals if refusal.rule in overridden)


def describe_limit(rules: Sequence[str]) -> str:
    hours, named = durations.format_readable(MAX_DURATION), ", ".join(f"“{rule}”" for rule in rules)
    rule = "rules" if len(rules) > 1 else "rule"
    return f"Against the {rule} {named} it can be engaged for at most {hours} and not permanently."
