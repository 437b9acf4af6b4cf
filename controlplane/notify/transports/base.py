"""The interface of a transport, and the registry of transports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.rate_limiter import RateLimit
from controlplane.core.registry import KindRegistry
from controlplane.notify.models.targets import Target

from .channel_settings import ChannelSettings
from .rate_limits import DEFAULT_LIMIT


class DocsRow(NamedTuple):
    """A row of the table of destinations in docs/notifications.md, in Markdown."""

    name: str
    needs: str
    threads: str
    in_doubt: str


@dataclass(frozen=True, kw_only=True)
class Transport:
    """A kind of destination, and the functions that send messages there.

    A destination is a text: the `key` alone, `key:address`, or `key:id` with the id of the target
    that holds the `settings`. `label` names the kind within a sentence, `icon` on the screen, and
    `position` is its place in lists.

    `is_configured` returns True if the environment variables of the kind are set, and `reaches`
    True if messages can be sent to a destination. `send` raises a `DeliveryFailure` unless the
    message was accepted. `find_sent` returns True if a message sent since a time was delivered, and
    None if that is unknown; it may raise a `TransientFailure`. `secrets` returns texts that must
    never be logged or stored.

    `address_examples` are the accepted forms of a channel's address; a kind without any can't be
    used for channels. `check_address` returns the normalized address or raises `ValueError`,
    optionally with a sentence for the user. `person_column` is the column of targets and users with
    a person's address, and `check_person` checks such an address. `is_personal` returns True for a
    person's address.

    If `takes_every_event` is True, updates made obsolete by a later message are sent too.
    `tracks_incidents` is True for on-call services, which have an incident per subject: a message
    is also sent when an escalation is acknowledged or closed.
    """

    key: str
    label: str
    position: int
    reaches: Callable[[str], bool]
    send: Callable[[OutboxMessage], None]
    find_sent: Callable[[OutboxMessage, datetime], bool | None] | None = None
    secrets: Callable[[], Sequence[str]] = tuple
    is_configured: Callable[[], bool] = lambda: True
    icon: str = "delivery"
    limit: RateLimit = DEFAULT_LIMIT
    address_examples: tuple[str, ...] = ()
    check_address: Callable[[str], str] | None = None
    settings: ChannelSettings | None = None
    person_column: str = ""
    check_person: Callable[[str], str] | None = None
    is_personal: Callable[[str], bool] = lambda _: False
    takes_every_event: bool = False
    tracks_incidents: bool = False
    docs: tuple[DocsRow, ...] = ()

    def destination_of(self, channel: Target) -> str:
        """Return the destination of a channel; empty if its settings are incomplete."""
        if self.settings is None:
            return channel.address
        return f"{self.key}:{channel.pk}" if self.settings.is_complete(channel) else ""

    def shown_address(self, channel: Target) -> str:
        return self.settings.summary(channel) if self.settings else channel.address

    def describe(self, address: str) -> str:
        """Return the kind and an address as text: `Slack #ops`, `webhook`."""
        return f"{self.label} {address}" if address and self.settings is None else self.label


TRANSPORTS = KindRegistry[Transport](
    "transport", name=attrgetter("key"), order=attrgetter("position")
)
