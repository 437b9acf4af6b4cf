"""Slack, by bot token or incoming webhook."""

from datetime import datetime

from django.conf import settings

from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.transports.slack import history, subjects
from controlplane.core.outbox.transports.slack.blocks import escape, render
from controlplane.core.outbox.transports.slack.calls import Calls, by_webhook

__all__ = ["arrived", "configured", "escape", "reaches", "render", "secrets", "send"]

DESTINATION = "slack"
LOOK_SECONDS = 8.0
SAY_SECONDS = 13.0
"""Together shorter than a sender's lease, with room to write down how it went."""


def configured() -> bool:
    """Whether the environment names a bot token or a webhook."""
    return bool(settings.SLACK.bot_token or settings.SLACK.webhook_url)


def reaches(destination: str) -> bool:
    return configured() if destination == DESTINATION else bool(settings.SLACK.bot_token)


def secrets() -> list[str]:
    slack = settings.SLACK
    return [text for text in (slack.bot_token, slack.webhook_url, slack.signing_secret) if text]


def send(message: OutboxMessage) -> None:
    """Post one message. Raises a failure that says whether a repeat can help."""
    if settings.SLACK.bot_token:
        subjects.say(message, Calls(SAY_SECONDS))
    else:
        by_webhook(render(message))


def arrived(message: OutboxMessage, since: datetime) -> bool | None:
    """Whether it has been posted since then; None if Slack can't tell: a webhook never can."""
    if not settings.SLACK.bot_token:
        return None
    return history.arrived(message, since, Calls(LOOK_SECONDS))
