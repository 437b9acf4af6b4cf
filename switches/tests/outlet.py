"""Messages in the tests of episodes: where they may go, and which were written for whom."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.core.outbox.models import OutboxMessage


def configure(settings: Any) -> None:
    """Slack may be sent to, as far as routes know. Nothing is sent: nobody sweeps the outbox."""
    settings.SLACK = replace(settings.SLACK, bot_token="xoxb-1", channel="C0OPS", webhook_url="")


def told(event: str, **payload: Any) -> list[OutboxMessage]:
    """The messages of an event, oldest first, whose facts hold these values."""
    found = OutboxMessage.objects.filter(event=event).order_by("id")
    return [
        message
        for message in found
        if all(message.payload.get(fact) == value for fact, value in payload.items())
    ]


def events(since: datetime | None = None) -> list[str]:
    """The events of every message, oldest first."""
    found = OutboxMessage.objects.order_by("id")
    if since is not None:
        found = found.filter(created_at__gte=since)
    return list(found.values_list("event", flat=True))
