"""Letting traffic flow again: release, and the undo of a slip of the hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.people.roles import Power
from switches import publication, reasons, risk
from switches.models import Episode, Publication, Scope, Switch
from switches.rules import glass, guard
from switches.rules.glass import TWO_PERSON, Glass
from switches.rules.judge import Refusal
from switches.services import changes
from switches.services.register import identify, lock

UNDO_WITHIN = timedelta(seconds=30)
MODES = ("ramp", "immediate")


@dataclass(frozen=True)
class Release:
    """What releasing did: the switch was released, or an approval waits for a second person.

    `review` is what somebody else has to sign, if a rule was overridden.
    """

    switch: Switch
    approval: Approval | None = None
    review: Approval | None = None


def release(
    *,
    scope: str,
    key: str,
    justification: str,
    mode: str = "ramp",
    break_glass: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> Release:
    """Release a switch, or ask for the approval that :func:`needs_second_person` tells of.

    `break_glass` (`{"rule", "reason"}`) lets an approver go on at once: it names the rules in the
    way, of which `two-person` is one. The server's shell needs no second person, only a review.
    Raises :class:`InvalidInput` for a blank justification, :class:`Conflict` if it is released,
    :class:`SafetyRefused` if a rule is in the way.
    """
    actor.require("switches:write")
    identify(scope, key)
    errors: dict[str, list[str]] = {}
    if problems := reasons.unreadable(justification):
        errors["justification"] = problems
    if mode not in MODES:
        errors["mode"] = [f"Must be one of {', '.join(MODES)}."]
    if errors:
        raise InvalidInput(errors)
    override = glass.read(break_glass)
    with transaction.atomic():
        head = publication.lock()
        switch, episode = _engaged(scope, key)
        refusals = guard.refusals_to_release(switch.pk)
        if needs_second_person(switch, mode):
            if override is None and not _is_shell(actor):
                glass.overridden(refusals, None)
                return Release(switch, _ask(switch, episode, justification, actor, now))
            refusals.append(two_person(switch))
        if _is_shell(actor):
            override = _of_the_shell(override, justification)
        rules = glass.overridden(refusals, override)
        if not override or not rules:
            _close(head, switch, episode, justification.strip(), actor, now)
            return Release(switch)
        return _break(head, switch, episode, justification, override, rules, actor, now)


def needs_second_person(switch: Switch, mode: str) -> bool:
    """Whether a release in this mode waits for an approver who is not the one who asks.

    Always for the global switch; for a segment if it is immediate; for a protected one also by
    ramp, as long as there are no ramps and it would be immediate in effect.
    """
    if switch.scope == Scope.GLOBAL or guard.is_protected(switch.pk):
        return True
    return switch.scope == Scope.SEGMENT and mode == "immediate"


def undo(*, scope: str, key: str, actor: Actor, now: datetime) -> Switch:
    """Take back one's own engage within 30 seconds, if nothing changed since.

    A safety rule refuses it only if it was kept by another switch that was released meanwhile:
    what was so half a minute ago is no worse than what is so now. Raises :class:`Conflict` that
    says which of these does not hold.
    """
    actor.require("switches:write")
    with transaction.atomic():
        head = publication.lock()
        switch, episode = _engaged(scope, key)
        if episode.engaged_by_identity != actor.identity:
            raise Conflict("Only whoever engaged it can undo that; release it instead.")
        if now - episode.engaged_at > UNDO_WITHIN:
            raise Conflict("More than 30 seconds have passed; release it instead.")
        if switch.version != episode.engaged_version:
            raise Conflict("Something changed since it was engaged; release it instead.")
        glass.overridden(guard.refusals_to_undo(switch.pk, episode.engaged_at), None)
        changes.close(
            head,
            switch,
            episode,
            how=Episode.End.UNDONE,
            action="switch.undone",
            reason="Undone by whoever engaged it.",
            actor=actor,
            now=now,
        )
        return switch


def _engaged(scope: str, key: str) -> tuple[Switch, Episode]:
    switch = lock(scope, key)
    episode = changes.open_episode(switch) if switch is not None else None
    if switch is None or episode is None:
        last = Episode.objects.filter(switch_id=identify(scope, key)).order_by("-id").first()
        told = f" since {last.ended_at:%Y-%m-%d %H:%M} UTC, by {last.ended_by}" if last else ""
        raise Conflict(f"{scope}:{key} is already released{told}.", state="released")
    return switch, episode


def _close(
    head: Publication, switch: Switch, episode: Episode, reason: str, actor: Actor, now: datetime
) -> AuditEntry:
    return changes.close(
        head,
        switch,
        episode,
        how=Episode.End.RELEASED,
        action="switch.released",
        reason=reason,
        actor=actor,
        now=now,
    )


def _break(
    head: Publication,
    switch: Switch,
    episode: Episode,
    justification: str,
    override: Glass,
    rules: tuple[str, ...],
    actor: Actor,
    now: datetime,
) -> Release:
    """Release against the rules, loudly; a person may who could have approved it for another."""
    if not _is_shell(actor):
        actor.require_power(Power.APPROVE)
    broken = glass.told(override.reason, rules, "release")
    episode.broke_glass = {**(episode.broke_glass or {}), "release": broken}
    episode.save(update_fields=["broke_glass"])
    entry = _close(head, switch, episode, justification.strip(), actor, now)
    review = glass.shout(switch, episode, broken, entry, actor, now)
    return Release(switch, review=review)


def _is_shell(actor: Actor) -> bool:
    return actor.type == "system"


def _of_the_shell(override: Glass | None, justification: str) -> Glass:
    """Whoever is on the server acts alone; other rules than that have to be named there too."""
    if override is None:
        return Glass((TWO_PERSON,), justification.strip())
    return Glass((*override.rules, TWO_PERSON), override.reason)


def two_person(switch: Switch) -> Refusal:
    """The rule that its release waits for a second person, as one more that refuses."""
    passes = "Leave break_glass out, and it waits for an approver."
    return Refusal(
        TWO_PERSON, f"A second person has to approve the release of {switch.pk}.", passes
    )


def _ask(
    switch: Switch, episode: Episode, justification: str, actor: Actor, now: datetime
) -> Approval:
    return approvals.request(
        kind=Approval.Kind.RELEASE,
        target=switch.pk,
        summary=f"Release {switch.pk}: services let all traffic flow again",
        diff={"episode": episode.pk, "state": [episode.state.value, "released"]},
        reason=justification.strip(),
        risk="critical" if switch.scope == Scope.GLOBAL else "high",
        facts=risk.facts(switch.pk, now),
        actor=actor,
        now=now,
    )


@approvals.carries_out(
    Approval.Kind.RELEASE, lock_first=publication.lock, check_reason=reasons.unreadable
)
def _release_as_approved(approval: Approval, actor: Actor, now: datetime) -> None:
    head = publication.lock()
    switch = Switch.objects.select_for_update().get(pk=approval.target)
    episode = changes.open_episode(switch)
    if episode is None or episode.pk != approval.diff["episode"]:
        raise Conflict(f"{switch.pk} is no longer in the episode this was asked for.")
    glass.overridden(guard.refusals_to_release(switch.pk), None)
    _close(head, switch, episode, approval.reason, actor, now)
