"""Readable names of destinations, without addresses.

Only signed-in people see personal addresses; programs, reports and digests get the name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q

from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import TRANSPORTS

HIDDEN = "[hidden]"


@dataclass(frozen=True)
class DestinationName:
    """A destination with the label of its transport (`way`) and the name of its target, if any.

    `is_personal` is True if the address belongs to a person.
    """

    destination: str
    way: str
    name: str
    is_personal: bool

    @property
    def icon(self) -> str:
        transport = destinations.transport_for(self.destination)
        return transport.icon if transport else "delivery"

    @property
    def address(self) -> str:
        """The part after the transport's key; empty for channels with stored settings."""
        return "" if self._is_stored else self.destination.partition(":")[2]

    @property
    def _is_stored(self) -> bool:
        transport = destinations.transport_for(self.destination)
        return transport is not None and transport.settings is not None

    @property
    def label(self) -> str:
        """The display name, without a personal address: `kim (e-mail)`, `Slack #ops`."""
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


def name_destinations(destinations: Iterable[str]) -> dict[str, DestinationName]:
    """Return names by destination, with a fixed number of queries."""
    wanted = list(dict.fromkeys(destinations))
    names = _find_names(wanted)
    return {one: _make_name(one, names.get(one, "")) for one in wanted}


def is_personal(destination: str) -> bool:
    transport = destinations.transport_for(destination)
    return transport is not None and transport.is_personal(destination.partition(":")[2])


def hide_address(destination: str) -> str:
    return f"{destination.partition(':')[0]}:{HIDDEN}" if is_personal(destination) else destination


def find_destinations(name: str) -> list[str]:
    targets = Target.objects.select_related("user").filter(name__iexact=name)
    return [destination for target in targets for destination in _list_destinations(target)]


def _make_name(destination: str, name: str) -> DestinationName:
    (way,) = destinations.describe_destinations([destination.partition(":")[0]])
    return DestinationName(destination, way, name, is_personal(destination))


def _find_names(destinations: list[str]) -> dict[str, str]:
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
        for destination in _list_destinations(target):
            found.setdefault(destination, target.name)
    return found


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _list_destinations(target: Target) -> list[str]:
    """Return every destination that the target can have, at any time."""
    own = destinations.transport_of(target)
    if own is not None and own.settings:
        return [f"{own.key}:{target.pk}"]
    found = [target.address] if target.address else []
    for transport in TRANSPORTS.values():
        if column := transport.person_column:
            addresses = (getattr(target, column), getattr(target.user, column, ""))
            found += [f"{transport.key}:{one}" for one in dict.fromkeys(addresses) if one]
    return found
