"""Lookups of transports, and sending by a destination or a channel."""

from collections.abc import Iterable
from dataclasses import astuple
from datetime import datetime
from typing import Any

from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Target

from .base import TRANSPORTS, Transport
from .failures import PermanentFailure
from .pacing import DEFAULT_LIMIT, Limit

DOCS_COLUMNS = ("destination", "needs", "one message per episode", "a doubtful send")


def channel_transports() -> tuple[Transport, ...]:
    """Return the transports that channels may have."""
    return tuple(one for one in TRANSPORTS.values() if one.address_examples)


def transport_for(destination: str) -> Transport | None:
    """Return the transport of a destination, or of a channel's address."""
    return TRANSPORTS.get(destination.partition(":")[0])


def transport_of(channel: Target) -> Transport | None:
    """Return the transport of a channel; None without an address, or if it no longer exists."""
    found = transport_for(channel.address)
    return found if found is not None and found.address_examples else None


def reaches(destination: str) -> bool:
    """Return whether some transport is configured to send there."""
    transport = transport_for(destination)
    return transport is not None and transport.reaches(destination)


def send(message: OutboxMessage) -> None:
    """Send a message by the transport of its destination; raises a `DeliveryFailure`."""
    transport = transport_for(message.destination)
    if transport is None or not transport.reaches(message.destination):
        raise PermanentFailure(f"{message.destination} is not configured any more")
    transport.send(message)


def find_sent(message: OutboxMessage, since: datetime) -> bool | None:
    """Return whether a message that may have been sent was delivered; None if unknown."""
    transport = transport_for(message.destination)
    if transport is None or transport.find_sent is None:
        return None
    if not transport.reaches(message.destination):
        return None
    return transport.find_sent(message, since)


def redact(text: str) -> str:
    """Return the text without any secret of any transport."""
    for transport in TRANSPORTS.values():
        for secret in transport.secrets():
            text = text.replace(secret, "[redacted]")
    return text


def takes_every_event(destination: str) -> bool:
    """Return whether a destination also gets updates that a later message makes obsolete."""
    transport = transport_for(destination)
    return transport is not None and transport.takes_every_event


def tracks_incidents(destination: str) -> bool:
    """Return whether each subject is an incident of its own at a destination."""
    transport = transport_for(destination)
    return transport is not None and transport.tracks_incidents


def limit_for(destination: str) -> Limit:
    """Return the rate limit of a destination."""
    transport = transport_for(destination)
    return transport.limit if transport else DEFAULT_LIMIT


def describe(destinations: Iterable[str]) -> list[str]:
    """Return destinations in words: `e-mail kim@example.org`, `Slack #ops`, `webhook`."""
    described = []
    for destination in destinations:
        key, _, address = destination.partition(":")
        transport = TRANSPORTS.get(key)
        described.append(transport.describe(address) if transport else f"{key} {address}".strip())
    return described


def masked_settings(channel: Target) -> dict[str, Any]:
    """Return the displayable values of a channel's settings, by field name."""
    transport = transport_of(channel)
    return dict(transport.settings.masked(channel)) if transport and transport.settings else {}


def visible_settings(channel: Target) -> dict[str, str]:
    """Return the values of a channel's own settings that are not secret, by field name."""
    transport = transport_of(channel)
    if transport is None or transport.settings is None:
        return {}
    secret = {field.name for field in transport.settings.fields if field.is_secret}
    values = transport.settings.values(channel)
    return {name: value for name, value in values.items() if name not in secret}


def address_forms() -> str:
    """Return all forms of a channel's address, as a sentence lists them."""
    *forms, last = [form for one in channel_transports() for form in one.address_examples]
    return f"{', '.join(forms)} or {last}"


def docs_table() -> str:
    """Return the table of destinations in Markdown, as in the docs."""
    rows = [DOCS_COLUMNS, *(astuple(row) for one in TRANSPORTS.values() for row in one.docs)]
    head, *lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([head, "|---" * len(DOCS_COLUMNS) + "|", *lines])
