"""Shared parts of the transports to on-call services: incident keys, requests and responses.

All messages about one subject have the same key, so a repeat changes nothing.
"""

from collections.abc import Mapping
from typing import Any

import httpx
from django.conf import settings

from controlplane.core.egress_guard.allowed_networks import WEBHOOKS
from controlplane.core.egress_guard.guard import GuardedTransport
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.renderer import RenderedMessage

from .channel_settings import ChannelSettings, SettingSpec, find_channel
from .failures import PermanentFailure
from .identity import stable_id
from .outbound import post


def region_setting(key: str, label: str) -> SettingSpec:
    """Return the setting for the region of an on-call service's API: `us` or `eu`."""
    return SettingSpec(
        name=f"{key}_region",
        label=f"{label} region",
        noun="a region",
        help_text="us (default) or eu.",
        choices=(("us", "United States"), ("eu", "Europe")),
    )


def incident_key(message: OutboxMessage) -> str:
    """Return a message's incident key for on-call services, made of its subject or else its id."""
    about = message.subject or stable_id(message)
    return f"switchgear:{settings.ENVIRONMENT_NAME}:{about}"


def details_of(message: OutboxMessage, rendered: RenderedMessage) -> dict[str, str]:
    own = {"Event": message.event, "Environment": str(settings.ENVIRONMENT_NAME)}
    return {**dict(rendered.lines), **own}


def console_name() -> str:
    return str(settings.PUBLIC_URL or f"Switchgear {settings.ENVIRONMENT_NAME}")


def post_event(
    service: str,
    url: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    transport: httpx.AsyncBaseTransport | None = None,
) -> None:
    """POST an event to an on-call service; raise a `DeliveryFailure` unless it is accepted."""
    response = post(url, body, headers, transport=transport or GuardedTransport(WEBHOOKS))
    reason = f"HTTP {response.status} from {service}"
    if response.status in {401, 403}:
        raise PermanentFailure(f"{reason}: give the target a valid key")
    if response.status in {400, 422}:
        raise PermanentFailure(f"{reason}: it does not accept the event; check the target's key")
    response.check(service)


def read_settings(destination: str, settings: ChannelSettings, key: SettingSpec) -> dict[str, str]:
    """Return a channel's settings; raise :class:`PermanentFailure` if it has no value of `key`."""
    channel = find_channel(destination)
    values = settings.values(channel) if channel else {}
    if not values.get(key.name):
        raise PermanentFailure(f"{destination} has no {key.noun.partition(' ')[2]}")
    return values
