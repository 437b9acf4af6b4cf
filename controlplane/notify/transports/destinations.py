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

DOCS_COLUMNS = ("destination", "needs", "one message per episode", "an unconfirmed send")


def channel_transports() -> tuple[Transport, ...]:
    return tuple(one for one in TRANSPORTS.values() if one.address_examples)


def channel_fields() -> list[SettingSpec]:
    return [field for one in channel_transports() if one.settings for field in one.settings.fields]


def transport_for(destination: str) -> Transport:
    """Return the transport of a destination; for an unknown key, one that reaches nothing."""
    key = destination.partition(":")[0]
    return TRANSPORTS.get(key) or Transport(
        key=key, label=key, position=0, reaches=lambda _: False, send=send_message
    )


def transport_of(channel: Target) -> Transport | None:
    """Return the transport of a channel; None if it has no address or an unknown transport."""
    found = transport_for(channel.address)
    return found if found.address_examples else None


def send_message(message: OutboxMessage) -> None:
    """Send a message by its destination's transport; raise a `DeliveryFailure` unless accepted."""
    transport = transport_for(message.destination)
    if not transport.reaches(message.destination):
        raise PermanentFailure(f"{message.destination} is no longer configured")
    transport.send(message)


def find_sent_message(message: OutboxMessage, since: datetime) -> bool | None:
    """Return True if the message was delivered since `since`, False if not, None if unknown."""
    transport = transport_for(message.destination)
    if transport.find_sent and transport.reaches(message.destination):
        return transport.find_sent(message, since)
    return None


def redact_secrets(text: str) -> str:
    """Return the text with the secrets of all transports replaced."""
    for transport in TRANSPORTS.values():
        for secret in transport.secrets():
            text = text.replace(secret, "[redacted]")
    return text


def limit_for(destination: str) -> RateLimit:
    return transport_for(destination).limit


def describe_destinations(destinations: Iterable[str]) -> list[str]:
    """Return destinations as texts: `e-mail kim@example.org`, `Slack #ops`, `webhook`."""
    return [transport_for(one).describe(one.partition(":")[2]) for one in destinations]


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
