"""Sentences about deliveries, made only from rows of the outbox."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q, QuerySet

from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.retention_rules import MESSAGES
from controlplane.notify.targets import destination_names, reach

NOBODY_NOTIFIED = "No recipient is configured for this: nobody was notified"
NO_RECIPIENT = "No recipient is configured: nobody is notified"
MAX_LISTED = 20


@dataclass(frozen=True)
class DeliveryCounts:
    """Numbers of messages by outcome; a message has one destination.

    `replaced` messages were skipped because a later one reports the newer state.
    """

    delivered: int = 0
    waiting: int = 0
    failed: int = 0
    replaced: int = 0

    @property
    def total(self) -> int:
        return self.delivered + self.waiting + self.failed


@dataclass(frozen=True)
class DeliveryStatement:
    """A sentence without a full stop; `tone` is `good`, `pending`, `bad` or `unknown`."""

    text: str
    tone: str


UNKNOWN = DeliveryStatement("Unknown: these messages are no longer stored", "unknown")


def count_deliveries(messages: QuerySet[OutboxMessage]) -> DeliveryCounts:
    """Return the numbers of these messages by outcome, in one query."""
    states = {"delivered": "sent", "waiting": "pending", "failed": "failed"}
    counts = {name: Count("pk", filter=Q(state=state)) for name, state in states.items()}
    replaced = Count("pk", filter=Q(state="superseded"))
    return DeliveryCounts(**messages.order_by().aggregate(**counts, replaced=replaced))


def event_context(event_key: str, now: datetime) -> dict[str, Any]:
    """Return the template context of `core/_delivery_statement.html` for one announced event."""
    messages = OutboxMessage.objects.filter(event_key=event_key)
    rows = list(messages.order_by("id")[:MAX_LISTED])
    names = destination_names.name_destinations(row.destination for row in rows)
    return {
        "now": now,
        "event_key": event_key,
        "statement": describe_counts(count_deliveries(messages)),
        "deliveries": [(row, names[row.destination]) for row in rows],
    }


def describe_escalation(escalation: Escalation) -> DeliveryStatement | None:
    """Return the statement about an escalation's last notifications; None without their messages.

    Notifications of many escalations in one message are not counted.
    """
    first = max(1, escalation.notices + 1 - MAX_LISTED)
    numbers = range(first, escalation.notices + 1)
    keys = [f"escalation:{escalation.pk}:{number}" for number in numbers]
    counts = count_deliveries(OutboxMessage.objects.filter(event_key__in=keys))
    if not counts.total:
        return None
    noun = "message" if counts.total == 1 else "messages"
    parts = [f"{counts.delivered:,} of {counts.total:,} {noun} delivered", *_list_open(counts)]
    return DeliveryStatement(". ".join(parts), _tone(counts))


def describe_absence(now: datetime, *, otherwise: str = "No messages yet") -> str:
    """Return the sentence for an empty outbox; `otherwise` if somebody would be notified."""
    return otherwise if reach.has_recipient(now) else NO_RECIPIENT


def describe_week(counts: DeliveryCounts, end: datetime, now: datetime) -> DeliveryStatement:
    """Return the statement about the messages of a week that ends at `end`."""
    if counts.total:
        noun = "message" if counts.delivered == 1 else "messages"
        parts = [f"{counts.delivered:,} {noun} delivered", *_list_open(counts)]
        return DeliveryStatement(". ".join(parts), _tone(counts))
    if end < now - MESSAGES.period:
        return UNKNOWN
    text = describe_absence(now, otherwise="No messages this week")
    return DeliveryStatement(text, "pending" if text == NO_RECIPIENT else "good")


def describe_counts(counts: DeliveryCounts) -> DeliveryStatement:
    """Return a statement such as `Delivered to 3 of 4 destinations. Waiting: 1`."""
    if not counts.total:
        if counts.replaced:
            return DeliveryStatement("Replaced by a newer message", "good")
        return DeliveryStatement(NOBODY_NOTIFIED, "bad")
    noun = "destination" if counts.total == 1 else "destinations"
    parts = [f"Delivered to {counts.delivered:,} of {counts.total:,} {noun}"]
    parts += _list_open(counts)
    return DeliveryStatement(". ".join(parts), _tone(counts))


def _tone(counts: DeliveryCounts) -> str:
    return "bad" if counts.failed else "pending" if counts.waiting else "good"


def _list_open(counts: DeliveryCounts) -> list[str]:
    open_counts = {"Waiting": counts.waiting, "Failed": counts.failed}
    return [f"{name}: {number:,}" for name, number in open_counts.items() if number]
