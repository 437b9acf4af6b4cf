"""Interface to the notify app, for the destinations of messages.

`controlplane.notify` registers its router at startup; without one, announcing fails.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from controlplane.core.registry import Port


@dataclass(frozen=True)
class OnCall:
    """The person on call for a team: name, user id and user name if they have an account.

    `team` is the slug of the team whose rotation they are in: the team itself or one above it.
    """

    team: str
    name: str
    user_id: int | None = None
    username: str = ""


class Router(Protocol):
    """The interface by which core finds the destinations of messages, implemented in notify.

    `routed` returns an event's destinations: those of its routes, the channels of the team that
    owns the resource, the channels of other teams that were sent a message about the subject, and,
    unless the event opens an incident, the incident followers of the subject. `reachable` returns
    those of the given destinations that have a configured transport. `incident_followers` returns,
    by subject, the on-call services that were sent a message about it. `owner_channels` returns the
    channels of the owners of resources for an event: of the nearest team up the chain whose
    channels can be reached. `people_on_call` returns, by the slugs of teams, who is on call for
    each that has somebody, and `destinations_on_call` where to reach the first of them in order.
    """

    def routed(
        self, event: str, scope: str, severity: str, subject: str, resource: str, now: datetime
    ) -> list[str]: ...

    def reachable(self, destinations: Iterable[str]) -> list[str]: ...

    def incident_followers(self, subjects: Collection[str]) -> Mapping[str, Sequence[str]]: ...

    def destinations_of_user(self, user_id: int, now: datetime) -> list[str]: ...

    def owner_channels(
        self, event: str, severity: str, resources: Collection[str], now: datetime
    ) -> Mapping[str, Sequence[str]]: ...

    def destinations_on_call(
        self, slugs: Sequence[str], now: datetime, *, but: int | None = None
    ) -> list[str]: ...

    def people_on_call(self, slugs: Collection[str], now: datetime) -> Mapping[str, OnCall]: ...


_port = Port[Router]("No router is registered; install controlplane.notify.")
register, get = _port.register, _port.get


def find_on_call(slug: str, now: datetime) -> OnCall | None:
    """Return the person on call for a team: of its own rotation, or of the nearest team above.

    None if nobody is. For many teams, use `people_on_call`, whose number of queries is fixed.
    """
    return get().people_on_call([slug], now).get(slug)
