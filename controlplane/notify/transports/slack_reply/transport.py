"""The transport of replies to a pressed Slack button, by the response URL of the press.

Only the person who pressed sees the reply. The URL is a secret that is valid for half an hour: it
is stored in the message's payload, but never logged or shown.
"""

import contextlib
from datetime import timedelta
from urllib.parse import urlsplit

from django.conf import settings

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.transports.base import TRANSPORTS, Transport
from controlplane.notify.transports.failures import DeliveryFailure, PermanentFailure
from controlplane.notify.transports.outbound import ReceiverResponse, post
from controlplane.notify.transports.slack.blocks import escape_text
from controlplane.notify.transports.slack.transport import is_personal

KEY = "slack_reply"
EVENT = "interaction.answered"
ADDRESS = "response_url"
"""Key of the secret response URL in the payload."""
HOOKS = ("https", "hooks.slack.com")
GOOD_FOR = timedelta(minutes=25)
MAX_TEXT_LENGTH = 2000


def reaches(destination: str) -> bool:
    return bool(settings.SLACK.signing_secret)


def send(message: OutboxMessage) -> None:
    if db_now() - message.created_at > GOOD_FOR:
        raise PermanentFailure("too late: Slack accepts replies for half an hour")
    address, text = (str(message.payload.get(key, "")) for key in (ADDRESS, "said"))
    _post_text(address, text).check("Slack")


def try_to_post(address: str, text: str) -> None:
    with contextlib.suppress(DeliveryFailure):
        _post_text(address, text)


def is_slack_url(address: str) -> bool:
    """Return True for a URL on Slack's own host for responses, or on the configured Slack API's."""
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


def _post_text(address: str, text: str) -> ReceiverResponse:
    if not is_slack_url(address):
        raise PermanentFailure("the reply address is not Slack's")
    content = {
        "response_type": "ephemeral",
        "replace_original": False,
        "text": escape_text(text[:MAX_TEXT_LENGTH]),
    }
    return post(address, content, {})


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
