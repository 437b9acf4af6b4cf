"""Interface to the notify app, for the destinations of messages.

`controlplane.notify` registers its router at startup; without one, announcing fails.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from controlplane.core.registry import Port


class Router(Protocol):
    """The interface by which core finds the destinations of messages, implemented in notify.

    `routed` returns an event's destinations: those of its routes and, unless the event opens an
    incident, the incident followers of its subject. `reachable` returns those of the given
    destinations that have a configured transport. `incident_followers` returns, by subject, the
    on-call services that were sent a message about it.
    """

    def routed(
        self, event: str, scope: str, severity: str, subject: str, now: datetime
    ) -> list[str]: ...

    def reachable(self, destinations: Iterable[str]) -> list[str]: ...

    def incident_followers(self, subjects: Collection[str]) -> Mapping[str, Sequence[str]]: ...

    def destinations_of_user(self, user_id: int, now: datetime) -> list[str]: ...


_port = Port[Router]("No router is registered; install controlplane.notify.")
register, get = _port.register, _port.get
