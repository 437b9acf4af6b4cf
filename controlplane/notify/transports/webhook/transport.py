"""The webhook transport: JSON to a target's URL, signed by Standard Webhooks.

The receiver verifies `webhook-signature`, rejects an old `webhook-timestamp`, and drops repeats by
`webhook-id`, which is the same at every attempt. https://www.standardwebhooks.com
"""

import base64
import binascii
import hashlib
import hmac
import time
from typing import Any

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
from controlplane.notify.transports.channels import SeenSecrets, find_channel
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.identity import stable_id
from controlplane.notify.transports.outbound import Answer, post

from .settings import WebhookSettings

KEY = "webhook"
MIN_SECRET_BYTES = 16

_TRANSIENT_STATUSES = {408, 425, 429}
_seen = SeenSecrets()


def reaches(destination: str) -> bool:
    """Return whether the destination is a target that still is a webhook."""
    return _target(destination) is not None


def send(message: OutboxMessage, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
    """Post one message; raises a `DeliveryFailure`."""
    target = _target(message.destination)
    if target is None:
        raise PermanentFailure(f"{message.destination} is not a webhook any more")
    body = orjson.dumps(content(message))
    headers = signed(stable_id(message), int(time.time()), body, target.signing_secret)
    guarded = transport or GuardedTransport(WEBHOOKS)
    answer = post(target.webhook_url, body, headers, transport=guarded)
    _judge(answer)


def content(message: OutboxMessage) -> dict[str, Any]:
    """Return the body: the rendered message, and its facts."""
    notice = renderer.render(message.event, message.payload)
    return {
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


def signed(message_id: str, at: int, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of a request at `at` (Unix time).

    Raises :class:`PermanentFailure` for an invalid secret.
    """
    key = _key(secret)
    if key is None:
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


def _key(secret: str) -> bytes | None:
    if not secret.startswith(SECRET_PREFIX):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) >= MIN_SECRET_BYTES else None


def _target(destination: str) -> Target | None:
    target = find_channel(destination)
    if target is None or not target.webhook_url:
        return None
    # The path often contains a secret, and an error may include it without the host.
    _, _, path = target.webhook_url.partition("://")[2].partition("/")
    secret = target.signing_secret
    _seen.remember(target.webhook_url, path, secret, secret.removeprefix(SECRET_PREFIX))
    return target


def _judge(answer: Answer) -> None:
    """Raise a `DeliveryFailure` unless the receiver accepted; no response text is stored."""
    if 200 <= answer.status < 300:
        return
    if answer.status in _TRANSIENT_STATUSES or answer.status >= 500:
        raise TransientFailure(
            f"HTTP {answer.status} from the receiver",
            retry_after_seconds=answer.retry_after_seconds,
            in_doubt=answer.status >= 500,
        )
    if 300 <= answer.status < 400:
        raise PermanentFailure(
            f"HTTP {answer.status} from the receiver: redirects are not followed; give its own URL"
        )
    if answer.status == 410:
        raise PermanentFailure("HTTP 410 from the receiver: it wants no more; remove the target")
    raise PermanentFailure(f"HTTP {answer.status} from the receiver")


TRANSPORTS.register(
    Transport(
        key=KEY,
        label="webhook",
        position=30,
        icon="link",
        reaches=reaches,
        send=send,
        secrets=_seen.all,
        address_examples=(KEY,),
        settings=WebhookSettings(),
        takes_every_event=True,  # Programs may count them.
        docs=(
            DocsRow(
                "webhook", "a target with a URL", "no", "is sent again with the same `webhook-id`"
            ),
        ),
    )
)
