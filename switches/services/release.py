"""Letting traffic flow again: release, and the undo of a slip of the hand."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import Conflict, InvalidInput
from switches import publication, reasons
from switches.models import Episode, Scope, Switch
from switches.services import changes
from switches.services.register import identify, lock

UNDO_WITHIN = timedelta(seconds=30)
MODES = ("ramp", "immediate")


@dataclass(frozen=True)
class Release:
    """What releasing did: the switch was released, or an approval waits for a second person."""

    switch: Switch
    approval: Approval | None = None


def release(
    *,
    scope: str,
    key: str,
    justification: str,
    mode: str = "ramp",
    actor: Actor,
    now: datetime,
) -> Release:
    """Release a switch. The global one needs an approver who is not the one who asks.

    Raises :class:`InvalidInput` for a blank justification, :class:`Conflict` if it is released.
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
    with transaction.atomic():
        head = publication.lock()
        switch, episode = _engaged(scope, key)
        if scope == Scope.GLOBAL and actor.type != "system":
            return Release(switch, _ask(switch, episode, justification, actor, now))
        changes.close(
            head,
            switch,
            episode,
            how=Episode.End.RELEASED,
            action="switch.released",
            reason=justification.strip(),
            actor=actor,
            now=now,
        )
        return Release(switch)


def undo(*, scope: str, key: str, actor: Actor, now: datetime) -> Switch:
    """Take back one's own engage within 30 seconds, if nothing changed since.

    Raises :class:`Conflict` that says which of these does not hold.
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


def _ask(
    switch: Switch, episode: Episode, justification: str, actor: Actor, now: datetime
) -> Approval:
    return approvals.request(
        kind=Approval.Kind.RELEASE,
        target=switch.pk,
        summary=f"Release {switch.pk}: services let all traffic flow again",
        diff={"episode": episode.pk, "state": [episode.state.value, "released"]},
        reason=justification.strip(),
        risk="critical",
        actor=actor,
        now=now,
    )


@approvals.carries_out(Approval.Kind.RELEASE, lock_first=publication.lock)
def _release_as_approved(approval: Approval, actor: Actor, now: datetime) -> None:
    head = publication.lock()
    switch = Switch.objects.select_for_update().get(pk=approval.target)
    episode = changes.open_episode(switch)
    if episode is None or episode.pk != approval.diff["episode"]:
        raise Conflict(f"{switch.pk} is no longer in the episode this was asked for.")
    changes.close(
        head,
        switch,
        episode,
        how=Episode.End.RELEASED,
        action="switch.released",
        reason=approval.reason,
        actor=actor,
        now=now,
    )
