"""An episode past its time that stays engaged: OVERDUE, until somebody extends or releases it."""

from datetime import datetime

from controlplane.core.actors import Actor
from controlplane.core.escalation import services as escalation
from switches import facts
from switches.models import Episode, Switch
from switches.scopes import overdue_severity
from switches.services import changes

OVERDUE = "episode.overdue"


def mark(switch: Switch, episode: Episode, why: str, actor: Actor, now: datetime) -> None:
    """Being overdue is news, also to whoever acknowledged the switch while it was in time."""
    episode.overdue_at, episode.acknowledged_at, episode.acknowledged_by = now, None, ""
    episode.save(update_fields=["overdue_at", "acknowledged_at", "acknowledged_by"])
    escalation.close(subject=changes.subject(episode), now=now)
    escalation.open_escalation(
        subject=changes.subject(episode),
        event=OVERDUE,
        severity=overdue_severity(switch.scope),
        scope=switch.scope,
        facts=facts.message(switch, episode, actor, said=why),
        now=now,
        announced=True,
    )
