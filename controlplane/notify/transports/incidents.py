"""On-call services: incident keys, requests and the meaning of responses.

All messages about one subject have the same key there, so a repeat changes nothing.
"""

from collections.abc import Mapping
from typing import Any

import httpx
from django.conf import settings

from controlplane.core.egress_guard.allowed_networks import WEBHOOKS
from controlplane.core.egress_guard.guard import GuardedTransport
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.renderer import RenderedMessage

from .failures import PermanentFailure, TransientFailure
from .identity import stable_id
from .outbound import Answer, post

_TRANSIENT_STATUSES = {408, 425, 429}


def incident_key(message: OutboxMessage) -> str:
    """Return the key of a message's incident: that of its subject, or its own without one."""
    about = message.subject or stable_id(message)
    return f"switchgear:{settings.ENVIRONMENT_NAME}:{about}"


def details_of(message: OutboxMessage, rendered: RenderedMessage) -> dict[str, str]:
    """Return the details of an incident, by label."""
    return {
        **dict(rendered.lines),
        "Event": message.event,
        "Environment": str(settings.ENVIRONMENT_NAME),
    }


def source() -> str:
    """Return the name of this console: its address, if that is set."""
    return str(settings.PUBLIC_URL or f"Switchgear {settings.ENVIRONMENT_NAME}")


def post_event(
    service: str,
    url: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """POST an event to an on-call service; raises a `DeliveryFailure` unless it was accepted.

    The URL passes the same egress guard as a webhook's. No response text is logged or stored.
    """
    guarded = transport or GuardedTransport(WEBHOOKS)
    _check_answer(service, post(url, body, headers, transport=guarded))


def _check_answer(service: str, answer: Answer) -> None:
    if 200 <= answer.status < 300:
        return
    reason = f"HTTP {answer.status} from {service}"
    if answer.status in _TRANSIENT_STATUSES or answer.status >= 500:
        raise TransientFailure(reason, retry_after_seconds=answer.retry_after_seconds)
    if answer.status in {401, 403}:
        raise PermanentFailure(f"{reason}: give the target a valid key")
    if answer.status in {400, 422}:
        raise PermanentFailure(f"{reason}: it does not accept the event; check the target's key")
    raise PermanentFailure(reason)
