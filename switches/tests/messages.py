"""Messages in tests of episodes: configured destinations, and written messages."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.core.outbox.models import OutboxMessage


def configure(settings: Any) -> None:
    """Configure Slack as a destination; nothing is sent, as nobody sweeps the outbox."""
    settings.SLACK = replace(settings.SLACK, bot_token="xoxb-1", channel="C0OPS", webhook_url="")


def find(event: str, **payload: Any) -> list[OutboxMessage]:
    """Return the messages of an event whose facts hold these values, oldest first."""
    found = OutboxMessage.objects.filter(event=event).order_by("id")
    return [
        message
        for message in found
        if all(message.payload.get(fact) == value for fact, value in payload.items())
    ]


def events(since: datetime | None = None) -> list[str]:
    """Return the events of all messages, oldest first."""
    found = OutboxMessage.objects.order_by("id")
    if since is not None:
        found = found.filter(created_at__gte=since)
    return list(found.values_list("event", flat=True))
