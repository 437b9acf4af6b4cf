"""The acknowledge button of alert messages."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.buttons import JUST_NOW, read_id
from controlplane.notify.interactions.actions import button
from slo.alerts import lifecycle, notifications
from slo.models import Alert
from switches import buttons


@button("acknowledge")
def acknowledge_from_button(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Acknowledge the alert that a message or an escalation is about.

    For a message about anything else, call the general `acknowledge` button, which this replaces.
    """
    alert = _find_alert(value)
    if alert is None:
        return buttons.acknowledge(value, actor, now)
    actor.require("slo:write")
    if alert.resolved_at is not None:
        raise Conflict("This is over; there is nothing to acknowledge.")
    acknowledged_at = alert.acknowledged_at
    if acknowledged_at is not None and now - acknowledged_at <= JUST_NOW:
        return (
            f"{alert.acknowledged_by} has already acknowledged it. Escalation is paused for 24"
            " hours."
        )
    lifecycle.acknowledge_alert(alert_id=alert.pk, actor=actor, now=now)
    return f"You acknowledged {alert.subject_label}. Escalation is paused for 24 hours."


def _find_alert(value: Mapping[str, Any]) -> Alert | None:
    """Return the alert that a button belongs to, by the id of the alert or of its escalation."""
    if "alert" in value:
        return Alert.objects.filter(pk=read_id(value, "alert")).first()
    if "escalation" not in value:
        return None
    escalation = Escalation.objects.filter(pk=read_id(value, "escalation")).first()
    if escalation is None or not escalation.subject.startswith(notifications.ALERT_PREFIX):
        return None
    number = escalation.subject.removeprefix(notifications.ALERT_PREFIX)
    return Alert.objects.filter(pk=int(number)).first()
