"""The Slack transport: by bot token if configured, else by incoming webhook."""

import re
from datetime import datetime

from django.conf import settings

from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.transports.base import TRANSPORTS, DocsRow, Transport

from . import history, subjects
from .blocks import render_message
from .calls import SlackCalls, post_to_webhook

KEY = "slack"
LOOK_SECONDS = 8.0
SAY_SECONDS = 13.0
"""Time limit of a post, in seconds; a post and a lookup together end within a sender's lease."""

# Channel names may use any script, but of ASCII only letters, digits, `-`, `.` and `_`.
_CHANNEL_NAME = r"#[^\x00-,/:-@\[-^`{-\x7f\s]{1,80}"
_ADDRESS = re.compile(rf"slack(?::(?:{_CHANNEL_NAME}|[CGDUW][A-Z0-9]{{2,38}}))?")
_MEMBER_ID = re.compile(r"[UW][A-Z0-9]{2,38}")
_PEOPLE = ("U", "W", "D", "@")
"""First characters of addresses that belong to a person, not to a channel."""


def reaches(destination: str) -> bool:
    """Return True if messages can be sent to the destination.

    A webhook sends only to the destination `slack`; other destinations need a bot.
    """
    return is_configured() if destination == KEY else bool(settings.SLACK.bot_token)


def is_configured() -> bool:
    return bool(settings.SLACK.bot_token or settings.SLACK.webhook_url)


def list_secrets() -> list[str]:
    slack = settings.SLACK
    return [text for text in (slack.bot_token, slack.webhook_url, slack.signing_secret) if text]


def send(message: OutboxMessage) -> None:
    if settings.SLACK.bot_token:
        subjects.post_message(message, SlackCalls(SAY_SECONDS))
    else:
        post_to_webhook(render_message(message))


def find_sent(message: OutboxMessage, since: datetime) -> bool | None:
    """Return True if the message was posted since `since`, False if not, None if unknown."""
    if not settings.SLACK.bot_token:
        return None
    return history.find_message(message, since, SlackCalls(LOOK_SECONDS))


def check_address(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise ValueError
    return address


def check_person(address: str) -> str:
    """Check and return a member ID; raise :class:`ValueError` with a sentence for the user."""
    if not _MEMBER_ID.fullmatch(address):
        raise ValueError("A Slack member ID, such as U024BE7LH, from the person's profile.")
    return address


def is_personal(address: str) -> bool:
    return address.startswith(_PEOPLE)


TRANSPORTS.register(
    Transport(
        key=KEY,
        label="Slack",
        position=10,
        icon="slack",
        reaches=reaches,
        send=send,
        find_sent=find_sent,
        secrets=list_secrets,
        is_configured=is_configured,
        limit=RateLimit(1, 10),  # Slack accepts a message a second per channel, and short bursts.
        address_examples=("slack", "slack:#name", "slack:C024BE91L"),
        check_address=check_address,
        person_column="slack_user_id",
        check_person=check_person,
        is_personal=is_personal,
        docs=(
            DocsRow(
                "Slack by bot",
                "`SLACK_BOT_TOKEN`, `SLACK_CHANNEL`",
                "yes: updated in place, the rest in its thread",
                "the channel is searched first, and the message sent again only if it isn't there",
            ),
            DocsRow(
                "Slack by incoming webhook",
                "`SLACK_WEBHOOK_URL`",
                "no: one message per event",
                "is sent again, and may appear twice",
            ),
        ),
    )
)
