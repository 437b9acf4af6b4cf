"""Lookup of transports by destination or channel, and sending by destination."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.models.targets import Target

from .base import TRANSPORTS, Transport
from .channel_settings import SettingSpec
from .failures import PermanentFailure
from .rate_limits import DEFAULT_LIMIT

DOCS_COLUMNS = ("destination", "needs", "one message per episode", "a doubtful send")


def channel_transports() -> tuple[Transport, ...]:
    return tuple(one for one in TRANSPORTS.values() if one.address_examples)


def channel_fields() -> list[SettingSpec]:
    return [field for one in channel_transports() if one.settings for field in one.settings.fields]


def transport_for(destination: str) -> Transport | None:
    return TRANSPORTS.get(destination.partition(":")[0])


def transport_of(channel: Target) -> Transport | None:
    """Return the transport of a channel; None without an address or a known transport."""
    found = transport_for(channel.address)
    return found if found is not None and found.address_examples else None


def reaches(destination: str) -> bool:
    transport = transport_for(destination)
    return transport is not None and transport.reaches(destination)


def send_message(message: OutboxMessage) -> None:
    """Send a message by the transport of its destination; raise a `DeliveryFailure`."""
    transport = transport_for(message.destination)
    if transport is None or not transport.reaches(message.destination):
        raise PermanentFailure(f"{message.destination} is not configured any more")
    transport.send(message)


def find_sent_message(message: OutboxMessage, since: datetime) -> bool | None:
    """Return True if a message sent since `since` was delivered; None if that is unknown."""
    transport = transport_for(message.destination)
    if transport and transport.find_sent and transport.reaches(message.destination):
        return transport.find_sent(message, since)
    return None


def redact_secrets(text: str) -> str:
    """Return the text with the secrets of all transports replaced."""
    for transport in TRANSPORTS.values():
        for secret in transport.secrets():
            text = text.replace(secret, "[redacted]")
    return text


def takes_every_event(destination: str) -> bool:
    """Return True if the destination also gets updates that a later message made obsolete."""
    transport = transport_for(destination)
    return transport is not None and transport.takes_every_event


def tracks_incidents(destination: str) -> bool:
    """Return True if the destination is an on-call service, which has an incident per subject."""
    transport = transport_for(destination)
    return transport is not None and transport.tracks_incidents


def limit_for(destination: str) -> RateLimit:
    transport = transport_for(destination)
    return transport.limit if transport else DEFAULT_LIMIT


def describe_destinations(destinations: Iterable[str]) -> list[str]:
    """Return destinations as texts: `e-mail kim@example.org`, `Slack #ops`, `webhook`."""
    described = []
    for destination in destinations:
        key, _, address = destination.partition(":")
        transport = TRANSPORTS.get(key)
        described.append(transport.describe(address) if transport else f"{key} {address}".strip())
    return described


def masked_settings(channel: Target) -> dict[str, Any]:
    transport = transport_of(channel)
    return dict(transport.settings.masked(channel)) if transport and transport.settings else {}


def visible_settings(channel: Target) -> dict[str, str]:
    transport = transport_of(channel)
    if transport is None or transport.settings is None:
        return {}
    secret = {field.name for field in transport.settings.fields if field.is_secret}
    values = transport.settings.values(channel)
    return {name: value for name, value in values.items() if name not in secret}


def address_forms() -> str:
    *forms, last = [form for one in channel_transports() for form in one.address_examples]
    return f"{', '.join(forms)} or {last}"


def docs_table() -> str:
    rows = [DOCS_COLUMNS, *(row for one in TRANSPORTS.values() for row in one.docs)]
    head, *lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([head, "|---" * len(DOCS_COLUMNS) + "|", *lines])
