"""Opening, acknowledging and closing escalations; `escalation.advance` tells the next person."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.escalation.models import Escalation


def open_escalation(
    *,
    subject: str,
    event: str,
    severity: str,
    facts: Mapping[str, Any],
    now: datetime,
    scope: str = "",
) -> Escalation:
    """Begin to tell people, in the caller's transaction; the one already open is returned as is.

    `event` names the wording of its messages and `facts` what they say; `severity` names the steps.
    The first step is told by the next turn of the tick, within seconds.
    """
    escalation, _ = Escalation.objects.get_or_create(
        subject=subject,
        closed_at=None,
        defaults={
            "event": event,
            "severity": severity,
            "scope": scope,
            "facts": dict(facts),
            "opened_at": now,
            "next_at": now,
        },
    )
    return escalation


def acknowledge(*, subject: str, actor: Actor, now: datetime) -> None:
    """Somebody knows: no further step for 24 hours, then once a day until it is closed.

    In the caller's transaction, and without effect if nothing is open for the subject. The caller
    writes the audit row.
    """
    Escalation.objects.filter(subject=subject, closed_at=None).update(
        acknowledged_at=now, acknowledged_by=actor.label
    )


def close(*, subject: str, now: datetime) -> None:
    """It is over: nobody is told any more. In the caller's transaction."""
    Escalation.objects.filter(subject=subject, closed_at=None).update(closed_at=now, next_at=None)
