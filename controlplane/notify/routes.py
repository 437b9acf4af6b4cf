"""Destinations of messages, looked up for :mod:`controlplane.core.outbox.router`."""

from collections.abc import Iterable
from datetime import datetime

from controlplane.core.message_templates import incident_action_of

from .models.targets import Target
from .targets import reach, routing
from .targets.routing import incident_followers, owner_channels
from .targets.team_contacts import destinations_on_call, people_on_call
from .transports.destinations import transport_for

__all__ = [
    "destinations_of_user",
    "destinations_on_call",
    "incident_followers",
    "owner_channels",
    "people_on_call",
    "reachable",
    "routed",
]


def routed(
    event: str, scope: str, severity: str, subject: str, resource: str, now: datetime
) -> list[str]:
    with routing.cached_routing():
        found = routing.find_destinations(event, scope, severity, now, resource)
        if subject and resource:
            found += routing.find_former_channels(subject, now)
    if subject and incident_action_of(event) != "trigger":
        found += incident_followers([subject]).get(subject, [])
    unique = dict.fromkeys(found)
    return [destination for destination in unique if reach.is_configured(destination)]


def reachable(destinations: Iterable[str]) -> list[str]:
    return [one for one in destinations if transport_for(one).reaches(one)]


def destinations_of_user(user_id: int, now: datetime) -> list[str]:
    people = Target.objects.filter(kind=Target.Kind.PERSON, user_id=user_id)
    return routing.list_destinations(people, now)
