"""End of an episode together with its live ramp."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.escalations import services as escalation
from switches import publication
from switches.episodes import changes, serialization
from switches.models import Episode, Publication, Switch

from . import live_ramps


def end_episode(
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
    """End an episode and its live ramp, publish the release, and return the audit row.

    `more` is added to the audit row and messages; `to` limits the messages' destinations if
    given.
    """
    escalation.close(subject=changes.episode_subject(episode), now=now)
    ended = live_ramps.supersede(
        switch, f"Released at once, by {actor.label}: {reason}", actor, now
    )
    facts = {"ramp": ended.pk, **more} if ended is not None else more
    before = serialization.audit_state(switch, episode)
    episode.ended_at = now
    episode.ended_by = actor.label
    episode.ended_how = how
    episode.justification = reason
    episode.save(update_fields=["ended_at", "ended_by", "ended_how", "justification"])
    publication.publish(head, switch, now)
    for kind in (Approval.Kind.RELEASE, Approval.Kind.PERMANENT):
        approvals.void_requests(
            kind=kind, target=switch.pk, actor=actor, now=now, why="The episode has ended."
        )
    return changes.record_change(
        action, switch, episode, actor, now, before=before, reason=reason, to=to, more=facts
    )
