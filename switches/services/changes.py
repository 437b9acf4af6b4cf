"""What every published change does at its end: audit, messages. And how an episode closes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.escalation import services as escalation
from controlplane.core.live.notes import changed
from controlplane.core.outbox import services as outbox
from switches import facts, publication
from switches.models import Episode, Publication, Switch
from switches.ramps import live_ramps


def open_episode(switch: Switch) -> Episode | None:
    """The open episode, locked; the switch has to be locked already."""
    return Episode.objects.select_for_update().filter(switch=switch, ended_at__isnull=True).first()


def subject(episode: Episode) -> str:
    """What messages and escalations about an episode share: one thread, one escalation."""
    return f"episode:{episode.pk}"


def tell(
    action: str,
    switch: Switch,
    episode: Episode,
    actor: Actor,
    now: datetime,
    *,
    before: dict[str, Any],
    reason: str,
    severity: str = "",
    to: Sequence[str] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
    in_words: Mapping[str, Any] = MappingProxyType({}),
) -> AuditEntry:
    """Write the audit row and the messages, and have open pages told. Last in the transaction: it
    takes the audit lock.

    `to` are the only destinations, where the routes are not to decide. `more` is told as well, in
    both; `in_words` in the messages only.
    """
    entry = audit.record(
        actor=actor,
        action=action,
        target=switch.pk,
        reason=reason,
        before=before,
        after={**facts.picture(switch, episode), **more},
        now=now,
    )
    outbox.announce(
        event=action,
        event_key=f"audit:{entry.pk}",
        scope=switch.scope,
        severity=severity,
        subject=subject(episode),
        facts=facts.message(switch, episode, actor, said=reason, **more, **in_words),
        now=now,
        to=to,
    )
    changed("switches", switch.pk)
    return entry


def close(
    head: Publication,
    switch: Switch,
    episode: Episode,
    *,
    how: Episode.End,
    action: str,
    reason: str,
    actor: Actor,
    now: datetime,
    to: Sequence[str] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> AuditEntry:
    """End the episode and publish it: services are told to let traffic flow again.

    A ramp that was under way is over with it. `more` is told as well.
    """
    escalation.close(subject=subject(episode), now=now)
    ended = live_ramps.supersede(
        switch, f"Released at once, by {actor.label}: {reason}", actor, now
    )
    told = {"ramp": ended.pk, **more} if ended is not None else more
    before = facts.picture(switch, episode)
    episode.ended_at = now
    episode.ended_by = actor.label
    episode.ended_how = how
    episode.justification = reason
    episode.save(update_fields=["ended_at", "ended_by", "ended_how", "justification"])
    publication.publish(head, switch, now)
    for kind in (Approval.Kind.RELEASE, Approval.Kind.PERMANENT):
        approvals.void(
            kind=kind, target=switch.pk, actor=actor, now=now, why="The episode has ended."
        )
    return tell(action, switch, episode, actor, now, before=before, reason=reason, to=to, more=told)
