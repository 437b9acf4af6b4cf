"""Readable names of destinations: the target's name and the transport, without the address.

Signed-in people may see personal addresses; programs, reports and digests get the name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from controlplane.notify.models.targets import Target
from controlplane.notify.transports import registry
from controlplane.notify.transports.base import TRANSPORTS

HIDDEN = "[hidden]"


@dataclass(frozen=True)
class Named:
    """A destination, its transport (`way`) and its target's name, empty without a target.

    `is_personal` says if its address is that of a person.
    """

    destination: str
    way: str
    name: str
    is_personal: bool

    @property
    def icon(self) -> str:
        """The icon of its transport."""
        transport = registry.transport_for(self.destination)
        return transport.icon if transport else "delivery"

    @property
    def address(self) -> str:
        """The part after the transport's key; empty for channels with stored settings."""
        return "" if self._is_stored else self.destination.partition(":")[2]

    @property
    def _is_stored(self) -> bool:
        transport = registry.transport_for(self.destination)
        return transport is not None and transport.settings is not None

    @property
    def label(self) -> str:
        """The display name, never a personal address: `kim (e-mail)`, `Slack #ops`."""
        if self.name:
            return (
                self.name if self.name.lower() == self.way.lower() else f"{self.name} ({self.way})"
            )
        if self._is_stored:
            return f"a removed {self.way}"
        if self.is_personal:
            return f"somebody ({self.way})"
        return f"{self.way} {self.address}".strip()

    def for_programs(self, text: str) -> str:
        """Return the text with a personal address replaced by `HIDDEN`."""
        return text.replace(self.address, HIDDEN) if self.is_personal and self.address else text


def named(destinations: Iterable[str]) -> dict[str, Named]:
    """Return the names of destinations, with a fixed number of queries."""
    wanted = list(dict.fromkeys(destinations))
    names = _names(wanted)
    return {one: _named(one, names.get(one, "")) for one in wanted}


def is_personal(destination: str) -> bool:
    """Return whether a destination's address is that of a person."""
    transport = registry.transport_for(destination)
    return transport is not None and transport.is_personal(destination.partition(":")[2])


def hidden(destination: str) -> str:
    """Return a destination with a personal address replaced: `email:[hidden]`."""
    return f"{destination.partition(':')[0]}:{HIDDEN}" if is_personal(destination) else destination


def named_like(name: str) -> list[str]:
    """Return the destinations of the targets with a name, ignoring case."""
    targets = Target.objects.select_related("user").filter(name__iexact=name)
    return [destination for target in targets for destination in _of(target)]


def _named(destination: str, name: str) -> Named:
    (way,) = registry.describe([destination.partition(":")[0]])
    return Named(destination, way, name, is_personal(destination))


def _names(destinations: list[str]) -> dict[str, str]:
    having = Q(address__in=destinations)
    for transport in TRANSPORTS.values():
        prefix = f"{transport.key}:"
        own = [
            one.removeprefix(prefix)
            for one in destinations
            if one.startswith(prefix) and one != prefix
        ]
        if transport.settings:
            having |= Q(pk__in=[int(one) for one in own if _is_id(one)])
        elif column := transport.person_column:
            having |= Q(**{f"{column}__in": own}) | Q(**{f"user__{column}__in": own})
    found: dict[str, str] = {}
    for target in Target.objects.select_related("user").filter(having).order_by("id"):
        for destination in _of(target):
            found.setdefault(destination, target.name)
    return found


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _of(target: Target) -> list[str]:
    """Return every destination that is this target's, at any time."""
    own = registry.transport_of(target)
    if own is not None and own.settings:
        return [f"{own.key}:{target.pk}"]
    found = [target.address] if target.address else []
    for transport in TRANSPORTS.values():
        if column := transport.person_column:
            addresses = (getattr(target, column), getattr(target.user, column, ""))
            found += [f"{transport.key}:{one}" for one in dict.fromkeys(addresses) if one]
    return found
