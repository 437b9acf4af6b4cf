"""One module for each way a message can leave the house.

A transport says whether it reaches a destination (`slack`, `slack:C024BE91L`, `webhook:7`: its
kind, and what tells them apart) and sends one message to one of them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.transports import email, slack, slack_reply, webhook
from controlplane.core.outbox.transports.failures import PermanentFailure


class Transport(Protocol):
    """What a module of this package has to offer."""

    def reaches(self, destination: str) -> bool:
        """Whether it is configured to send there."""

    def secrets(self) -> list[str]:
        """What must never be logged or stored."""

    def send(self, message: OutboxMessage) -> None:
        """Send it, or raise a `DeliveryFailure`."""


@runtime_checkable
class Askable(Protocol):
    """A transport that can look whether a message is there already."""

    def arrived(self, message: OutboxMessage, since: datetime) -> bool | None:
        """Whether it arrived after `since`; None if that can't be told.

        Raises :class:`TransientFailure` if it can't be asked just now.
        """


BY_KIND: Mapping[str, Transport] = {
    "slack": slack,
    "slack_reply": slack_reply,
    "email": email,
    "webhook": webhook,
}


def reaches(destination: str) -> bool:
    """Whether some transport is configured to send there."""
    transport = BY_KIND.get(destination.partition(":")[0])
    return transport is not None and transport.reaches(destination)


def send(message: OutboxMessage) -> None:
    """Hand a message to the transport of its destination; raises a `DeliveryFailure`."""
    transport = BY_KIND.get(message.destination.partition(":")[0])
    if transport is None or not transport.reaches(message.destination):
        raise PermanentFailure(f"{message.destination} is not configured any more")
    transport.send(message)


def arrived(message: OutboxMessage, since: datetime) -> bool | None:
    """Whether a message that may have been sent did arrive; None if its transport can't tell."""
    transport = BY_KIND.get(message.destination.partition(":")[0])
    if not isinstance(transport, Askable) or not reaches(message.destination):
        return None
    return transport.arrived(message, since)


def redact(text: str) -> str:
    """The text without any secret of any transport."""
    for transport in BY_KIND.values():
        for secret in transport.secrets():
            text = text.replace(secret, "[redacted]")
    return text
