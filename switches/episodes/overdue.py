"""Marking of overdue episodes: past their expiry and still engaged."""

from datetime import datetime

from controlplane.core.actors import Actor
from controlplane.core.escalations import services as escalation
from switches.models import Episode, Switch
from switches.scopes import overdue_severity

from . import changes, facts

OVERDUE = "episode.overdue"


def mark_overdue(switch: Switch, episode: Episode, why: str, actor: Actor, now: datetime) -> None:
    """Mark the episode overdue, clear its acknowledgment and open a new escalation."""
    episode.overdue_at, episode.acknowledged_at, episode.acknowledged_by = now, None, ""
    episode.save(update_fields=["overdue_at", "acknowledged_at", "acknowledged_by"])
    escalation.close(subject=changes.episode_subject(episode), now=now)
    escalation.open_escalation(
        subject=changes.episode_subject(episode),
        event=OVERDUE,
        severity=overdue_severity(switch.scope),
        scope=switch.scope,
        facts=facts.message_facts(switch, episode, actor, said=why),
        now=now,
        announced=True,
    )
