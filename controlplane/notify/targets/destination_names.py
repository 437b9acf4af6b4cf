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
    """The readable name of a destination: its transport's label, and its target's name, if any.

    `is_personal` is True if the address belongs to a person.
    """

    destination: str
    transport_label: str
    name: str
    is_personal: bool

    @property
    def icon(self) -> str:
        return destinations.transport_for(self.destination).icon

    @property
    def address(self) -> str:
        """The destination without its transport's key; empty if the target stores the address."""
        return "" if self._is_stored else self.destination.partition(":")[2]

    @property
    def _is_stored(self) -> bool:
        return destinations.transport_for(self.destination).settings is not None

    @property
    def label(self) -> str:
        """The display name, without a personal address, such as `kim (e-mail)` or `Slack #ops`."""
        if self.name and self.name.lower() == self.transport_label.lower():
            return self.name
        if self.name:
            return f"{self.name} ({self.transport_label})"
        if self._is_stored:
            return f"a removed {self.transport_label}"
        if self.is_personal:
            return f"someone ({self.transport_label})"
        return f"{self.transport_label} {self.address}".strip()

    def for_programs(self, text: str) -> str:
        """Return `text` with this destination's personal address replaced by `HIDDEN`."""
        return text.replace(self.address, HIDDEN) if self.is_personal and self.address else text


def name_destinations(wanted: Iterable[str]) -> dict[str, DestinationName]:
    """Return the name of each of the destinations, with a fixed number of queries."""
    unique = list(dict.fromkeys(wanted))
    names = _find_names(unique)
    labels = destinations.describe_destinations(one.partition(":")[0] for one in unique)
    return {
        one: DestinationName(one, label, names.get(one, ""), is_personal(one))
        for one, label in zip(unique, labels, strict=True)
    }


def is_personal(destination: str) -> bool:
    return destinations.transport_for(destination).is_personal(destination.partition(":")[2])


def hide_address(destination: str) -> str:
    return f"{destination.partition(':')[0]}:{HIDDEN}" if is_personal(destination) else destination


def find_destinations(name: str) -> list[str]:
    targets = Target.objects.select_related("user").filter(name__iexact=name)
    return [destination for target in targets for destination in _list_destinations(target)]


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
            ids = [one for one in own if one.isascii() and one.isdigit() and len(one) < 19]
            having |= Q(pk__in=map(int, ids))
        elif column := transport.person_column:
            having |= Q(**{f"{column}__in": own}) | Q(**{f"user__{column}__in": own})
    found: dict[str, str] = {}
    for target in Target.objects.select_related("user").filter(having).order_by("id"):
        for destination in _list_destinations(target):
            found.setdefault(destination, target.name)
    return found


def _list_destinations(target: Target) -> list[str]:
    """Return every destination that messages to the target may have had, now or earlier."""
    own = destinations.transport_of(target)
    if own is not None and own.settings:
        return [f"{own.key}:{target.pk}"]
    found = [target.address] if target.address else []
    for transport in TRANSPORTS.values():
        if column := transport.person_column:
            addresses = (getattr(target, column), getattr(target.user, column, ""))
            found += [f"{transport.key}:{one}" for one in dict.fromkeys(addresses) if one]
    return found
