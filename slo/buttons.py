"""The acknowledge button of alert messages."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.buttons import JUST_NOW, number
from controlplane.notify.interactions.actions import button
from slo.alerts import lifecycle, notifications
from slo.models import Alert
from switches import buttons

PREFIX = "alert:"


@button("acknowledge")
def acknowledge(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Acknowledge the alert that a message, or an escalation step, is about.

    It replaces the button of that name for switches, which handles everything else.
    """
    found = _alert(value)
    if found is None:
        return buttons.acknowledge(value, actor, now)
    actor.require("slo:write")
    if found.resolved_at is not None:
        raise Conflict("This is over; there is nothing to acknowledge.")
    known_at = found.acknowledged_at
    if known_at is not None and now - known_at <= JUST_NOW:
        return f"{found.acknowledged_by} has just acknowledged it: nobody is told for 24 hours."
    lifecycle.acknowledge(alert_id=found.pk, actor=actor, now=now)
    return f"You acknowledged {found.subject}: nobody else is told for 24 hours."


def _alert(value: Mapping[str, Any]) -> Alert | None:
    """Return the alert by its id, or by the subject of the escalation."""
    if "alert" in value:
        return Alert.objects.filter(pk=number(value, "alert")).first()
    if "escalation" not in value:
        return None
    climbed = Escalation.objects.filter(pk=number(value, "escalation")).first()
    if climbed is None or not climbed.subject.startswith(PREFIX):
        return None
    ours = Alert.objects.filter(pk=int(climbed.subject.removeprefix(PREFIX))).first()
    return ours if ours and notifications.alert_subject(ours) == climbed.subject else None
