"""Port to notify: the destinations of messages.

`controlplane.notify` registers its router at startup; without one, nothing can be announced.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from django.core.exceptions import ImproperlyConfigured

from .escalation import Escalation


class Router(Protocol):
    """The interface that notify implements.

    `routed` returns the configured destinations of an event, each once: those of its routes, and
    those that follow the incident of its subject. `reachable` returns the configured ones of some
    destinations. `incident_followers` returns, by subject, the on-call services that were sent a
    message about it. `destinations_of_user` returns the destinations of a user. `next_notices`
    returns the next notification of open escalations, by their ids.
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
    """Set the router to use."""
    _registered[:] = [router]


def get() -> Router:
    """Return the registered router."""
    if not _registered:
        raise ImproperlyConfigured("No router is registered; install controlplane.notify.")
    return _registered[0]
