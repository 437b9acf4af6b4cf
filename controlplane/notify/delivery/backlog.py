"""Backlog alarm: an escalation that is open while too many messages are pending."""

from datetime import datetime

from django.db import transaction
from django.db.models import Min, QuerySet

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services as escalation
from controlplane.core.outbox import services
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage

SUBJECT, EVENT, OVER = "outbox:backlog", "outbox.backlog", "outbox.drained"
MANY, FEW = 1000, 500
"""Thresholds in messages: the alarm starts above the first and ends below the second."""


@transaction.atomic
def watch_backlog(now: datetime) -> int:
    """Open the alarm above `MANY` pending messages, close it below `FEW`; return their number."""
    pending = waiting_count()
    if pending > MANY:
        _start_alarm(pending, now)
    elif pending < FEW and (alarm := open_alarms().first()):
        escalation.close(subject=SUBJECT, now=now)
        services.announce(
            event=OVER,
            event_key=f"escalation:{alarm.pk}:over",
            facts={
                "pending": pending,
                "since_at": timestamp(alarm.opened_at),
                "path": "/deliveries/",
            },
            now=now,
        )
    return pending


def waiting_count() -> int:
    return OutboxMessage.objects.filter(state="pending").count()


def open_alarms() -> QuerySet[Escalation]:
    return Escalation.objects.filter(subject=SUBJECT, closed_at=None)


def _start_alarm(pending: int, now: datetime) -> None:
    waiting = OutboxMessage.objects.filter(state="pending")
    oldest = waiting.aggregate(oldest=Min("created_at"))["oldest"] or now
    escalation.open_escalation(
        subject=SUBJECT,
        event=EVENT,
        severity="critical",
        facts={
            "pending": pending,
            "waiting_since_at": timestamp(oldest),
            "said": "Check which destination delays them, and whether the worker is running.",
            "path": "/deliveries/?state=pending",
        },
        now=now,
    )
