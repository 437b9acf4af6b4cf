"""The transport interface: one object with everything the product needs to know about a kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.registry import KindRegistry
from controlplane.notify.models.targets import Target

from .channel_settings import ChannelSettings
from .pacing import DEFAULT_LIMIT, Limit


@dataclass(frozen=True)
class DocsRow:
    """A row of the table of destinations in docs/notifications.md: cells in Markdown.

    `in_doubt` says what happens to a message that may have been delivered already.
    """

    name: str
    needs: str
    threads: str
    in_doubt: str


@dataclass(frozen=True, kw_only=True)
class Transport:
    """A kind of destination, and the functions that send messages there.

    A destination is a text: the `key` alone, `key:address`, or `key:id` of the target whose row
    holds the `settings`. `label` names the kind within a sentence, `icon` on the screen, and
    `position` is its place in lists.

    `is_configured` returns whether the environment has what all destinations of the kind need,
    `reaches` whether one of them can be sent to. `send` raises a `DeliveryFailure` unless the
    message was accepted. `find_sent` returns whether a message that may have been sent since a time
    was delivered (None if that can't be determined), or raises a `TransientFailure`. `secrets`
    returns texts that must never be logged or stored.

    `address_examples` are the accepted forms of a channel's address; without any, no channel has
    this kind. `check_address` returns the normalized address or raises `ValueError`, optionally
    with a sentence for the user. `person_column` is the column of targets and users that holds a
    person's address, which `check_person` checks in the same way; without it, people are not
    reached by this kind. `is_personal` returns whether an address is a person's.

    `takes_every_event` keeps updates that a later message makes obsolete; `tracks_incidents` adds a
    message when an escalation that was sent there is acknowledged or closed.
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
    limit: Limit = DEFAULT_LIMIT
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
        """Return the destination of a channel of this kind; empty if it can't be sent to."""
        if self.settings is None:
            return channel.address
        return f"{self.key}:{channel.pk}" if self.settings.is_complete(channel) else ""

    def shown_address(self, channel: Target) -> str:
        """Return a channel's address for the screen, without secrets."""
        return self.settings.summary(channel) if self.settings else channel.address

    def describe(self, address: str) -> str:
        """Return the kind with an address in words: `Slack #ops`, `webhook`."""
        return f"{self.label} {address}" if address and self.settings is None else self.label


TRANSPORTS = KindRegistry[Transport](
    "transport", name=attrgetter("key"), order=attrgetter("position")
)
