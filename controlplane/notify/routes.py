"""The router registered with core; see :class:`controlplane.core.outbox.router.Router`."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from controlplane.core.message_templates import incident_action_of
from controlplane.core.outbox.escalation import Escalation

from .escalation import hearing
from .escalation.hearing import Hearing
from .models.targets import Target
from .targets import reach, routing
from .targets.routing import incident_followers
from .transports import registry

__all__ = ["destinations_of_user", "incident_followers", "next_notices", "reachable", "routed"]


def routed(event: str, scope: str, severity: str, subject: str, now: datetime) -> list[str]:
    """Return the configured destinations of an event, each once."""
    found = routing.routed(event, scope, severity, now)
    if subject and incident_action_of(event) != "trigger":
        found += incident_followers([subject]).get(subject, [])
    return [destination for destination in found if reach.configured(destination)]


def reachable(destinations: Iterable[str]) -> list[str]:
    """Return the destinations that are configured."""
    return [destination for destination in destinations if registry.reaches(destination)]


def destinations_of_user(user_id: int, now: datetime) -> list[str]:
    """Return the destinations of a user's person targets."""
    people = Target.objects.filter(kind=Target.Kind.PERSON, user_id=user_id)
    return routing.unique(people, now)


def next_notices(escalations: Sequence[Escalation], now: datetime) -> Mapping[int, Hearing]:
    """Return the next notification of open escalations, by their ids."""
    return hearing.next_of(escalations, now)
