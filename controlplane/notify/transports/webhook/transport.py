"""The webhook transport: JSON to a target's URL, signed by Standard Webhooks.

Receivers verify `webhook-signature`, reject an old `webhook-timestamp`, and drop repeats by
`webhook-id`, which is the same at every attempt. https://www.standardwebhooks.com
"""

import base64
import binascii
import contextlib
import hashlib
import hmac
import time

import httpx
import orjson
from django.conf import settings

from controlplane.core.canonical import timestamp
from controlplane.core.console_urls import console_url
from controlplane.core.egress_guard.allowed_networks import WEBHOOKS
from controlplane.core.egress_guard.guard import GuardedTransport
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import SECRET_PREFIX, Target
from controlplane.notify.transports.base import TRANSPORTS, DocsRow, Transport
from controlplane.notify.transports.channel_settings import find_channel
from controlplane.notify.transports.failures import PermanentFailure
from controlplane.notify.transports.identity import stable_id
from controlplane.notify.transports.outbound import post

from .settings import WebhookSettings

KEY = "webhook"
MIN_SECRET_BYTES = 16

SETTINGS = WebhookSettings()


def send(message: OutboxMessage, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
    target = _find_target(message.destination)
    if target is None:
        raise PermanentFailure(f"{message.destination} is no longer a webhook")
    notice = renderer.render(message.event, message.payload)
    body = orjson.dumps(
        {
            "id": stable_id(message),
            "event": message.event,
            "severity": message.severity,
            "subject": message.subject,
            "at": timestamp(message.created_at),
            "environment": settings.ENVIRONMENT_NAME,
            "title": notice.title,
            "lines": [{"label": label, "text": text} for label, text in notice.lines],
            "facts": message.payload,
            "url": console_url(notice.path),
        }
    )
    headers = sign_request(stable_id(message), int(time.time()), body, target.signing_secret)
    guarded = transport or GuardedTransport(WEBHOOKS)
    response = post(target.webhook_url, body, headers, transport=guarded)
    receiver = "the receiver"
    if 300 <= response.status < 400:
        receiver += ": redirects are not followed; use the final URL"
    elif response.status == 410:
        receiver += ": the receiver has unsubscribed; remove the target"
    response.check(receiver, doubt_server_errors=True)


def sign_request(message_id: str, at: int, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of a request at `at` (Unix time), with its signature."""
    key = b""
    if secret.startswith(SECRET_PREFIX):
        with contextlib.suppress(binascii.Error, ValueError):
            key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    if len(key) < MIN_SECRET_BYTES:
        raise PermanentFailure("the target has no usable secret; give it a new one")
    to_sign = b"%s.%d.%s" % (message_id.encode(), at, body)
    signature = base64.b64encode(hmac.digest(key, to_sign, hashlib.sha256)).decode()
    return {
        "Content-Type": "application/json",
        "User-Agent": "Switchgear",
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{signature}",
    }


def _find_target(destination: str) -> Target | None:
    target = find_channel(destination)
    if target is None or not target.webhook_url:
        return None
    # The path often contains a secret, and an error may include it without the host.
    _, _, path = target.webhook_url.partition("://")[2].partition("/")
    secret = target.signing_secret
    SETTINGS.remember_secrets(target.webhook_url, path, secret, secret.removeprefix(SECRET_PREFIX))
    return target


TRANSPORTS.register(
    Transport(
        key=KEY,
        label="webhook",
        position=30,
        icon="link",
        reaches=SETTINGS.reaches,
        send=send,
        secrets=SETTINGS.seen_secrets,
        address_examples=(KEY,),
        settings=SETTINGS,
        takes_every_event=True,  # Programs may count events.
        docs=(
            DocsRow(
                "webhook", "a target with a URL", "no", "is sent again with the same `webhook-id`"
            ),
        ),
    )
)
