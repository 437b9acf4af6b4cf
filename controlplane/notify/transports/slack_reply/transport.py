"""The transport of replies to people who pressed a button in Slack, by the press's response URL.

Only the presser sees the reply. The URL is a secret that is valid for half an hour: it is in the
message's payload, but in no log, error or page.
"""

from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.transports.base import TRANSPORTS, Transport
from controlplane.notify.transports.failures import (
    DeliveryFailure,
    PermanentFailure,
    TransientFailure,
)
from controlplane.notify.transports.outbound import Answer, post
from controlplane.notify.transports.slack.blocks import escape
from controlplane.notify.transports.slack.transport import is_personal

KEY = "slack_reply"
EVENT = "interaction.answered"
ADDRESS = "response_url"
"""Key of the secret response URL in the payload."""
HOOKS = ("https", "hooks.slack.com")
GOOD_FOR = timedelta(minutes=25)
MAX_TEXT_LENGTH = 2000
_TRANSIENT_STATUSES = {408, 425, 429}


def reaches(destination: str) -> bool:
    """Return whether button presses are accepted, which needs a signing secret."""
    return bool(settings.SLACK.signing_secret)


def send(message: OutboxMessage) -> None:
    """Post one reply; raises a `DeliveryFailure`."""
    if db_now() - message.created_at > GOOD_FOR:
        raise PermanentFailure("too late: Slack takes an answer for half an hour")
    _judge(_say(str(message.payload.get(ADDRESS, "")), str(message.payload.get("said", ""))))


def try_once(address: str, text: str) -> None:
    """Post a text once, ignoring failures."""
    try:
        _say(address, text)
    except DeliveryFailure:
        return


def is_slacks(address: str) -> bool:
    """Return whether a URL is Slack's, or that of the configured Slack API."""
    try:
        parts, api = urlsplit(address), urlsplit(settings.SLACK.api_url)
        port, api_port = parts.port, api.port
    except ValueError:
        return False
    if parts.username is not None or parts.password is not None:
        return False
    if (parts.scheme, parts.hostname) == HOOKS and port in (None, 443):
        return True
    return (parts.scheme, parts.hostname, port) == (api.scheme, api.hostname, api_port)


def _say(address: str, text: str) -> Answer:
    if not is_slacks(address):
        raise PermanentFailure("the address to answer at is not Slack's")
    said = {
        "response_type": "ephemeral",
        "replace_original": False,
        "text": escape(text[:MAX_TEXT_LENGTH]),
    }
    return post(address, said, {})


def _judge(answer: Answer) -> None:
    if 200 <= answer.status < 300:
        return
    reason = f"HTTP {answer.status} from Slack"
    if answer.status in _TRANSIENT_STATUSES or answer.status >= 500:
        raise TransientFailure(reason, retry_after_seconds=answer.retry_after_seconds)
    raise PermanentFailure(reason)


TRANSPORTS.register(
    Transport(
        key=KEY,
        label="Slack reply",
        position=90,
        icon="slack",
        reaches=reaches,
        send=send,
        person_column="slack_user_id",
        is_personal=is_personal,
    )
)
