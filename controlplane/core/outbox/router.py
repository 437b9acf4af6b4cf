"""Port to notify: where messages go.

`controlplane.notify` registers the router when it starts; without one, nothing can be announced.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from django.core.exceptions import ImproperlyConfigured

from .escalation import Escalation


class Router(Protocol):
    """What notify has to offer.

    `routed` returns the configured destinations of an event, each once: those the routes give, and
    those that follow the incident of its subject. `reachable` returns those of some destinations
    that are configured. `incident_followers` returns, by subject, the on-call services that were
    sent a message about it. `destinations_of_user` returns where a user is reached.
    `next_notices` returns what is sent next about open escalations, by their ids.
    """

    def routed(
        self, event: str, scope: str, severity: str, subject: str, now: datetime
    ) -> list[str]: ...

    def reachable(self, destinations: Iterable[str]) -> list[str]: ...

    def incident_followers(self, subjects: Collection[str]) -> Mapping[str, Sequence[str]]: ...

    def destinations_of_user(self, user_id: int, now: datetime) -> list[str]: ...

    def next_notices(
        self, escalations: Sequence[Escalation], now: datetime
    ) -> Mapping[int, Any]: ...


_registered: list[Router] = []


def register(router: Router) -> None:
    """Make `router` the one that is used."""
    _registered[:] = [router]


def get() -> Router:
    """Return the registered router."""
    if not _registered:
        raise ImproperlyConfigured("No router is registered; install controlplane.notify.")
    return _registered[0]
