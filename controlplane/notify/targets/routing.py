"""Routing of events to the destinations of matching targets.

A destination is a text that a transport understands: `slack` (the configured channel),
`slack:C024BE91L`, `email:ops@example.org`, or `webhook:7` (the id of a target). Routing takes at
most three queries, because it runs while contended locks are held.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from fnmatch import fnmatchcase

from controlplane.core.message_templates import incident_action_of
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import TRANSPORTS

from . import directory

_read: ContextVar[dict[tuple[str, str, str], list[str]] | None] = ContextVar("_read", default=None)


@contextmanager
def cached_routing() -> Iterator[None]:
    """Context manager: in the block, equal calls of :func:`find_destinations` query only once."""
    before = _read.set({})
    try:
        yield
    finally:
        _read.reset(before)


def find_destinations(event: str, scope: str, severity: str, now: datetime) -> list[str]:
    """Return the destinations to which routes send a matching event, without duplicates.

    On-call services are left out unless the event opens an incident.
    """
    cache, key = _read.get(), (event, scope, severity)
    if cache is not None and key in cache:
        return list(cache[key])
    leading = Route.objects.filter(scope__in=("", scope), severity__in=("", severity))
    matching = [
        route.target
        for route in leading.select_related("target__user").order_by("id")
        if fnmatchcase(event, route.event)
    ]
    found = directory.read_directory(matching).unique(matching, now)
    starts_incident = severity != "info" and incident_action_of(event) == "trigger"
    if not starts_incident:
        found = [one for one in found if not destinations.transport_for(one).tracks_incidents]
    if cache is not None:
        cache[key] = list(found)
    return found


def incident_followers(subjects: Collection[str]) -> dict[str, list[str]]:
    """Return, for each subject, the on-call services that were sent a message about it.

    They must also be sent the end of the incident, even if no route leads to them any more.
    """
    keys = [one.key for one in TRANSPORTS.values() if one.tracks_incidents]
    channels = Target.objects.filter(kind=Target.Kind.CHANNEL, address__in=keys)
    followers = [f"{address}:{pk}" for pk, address in channels.values_list("pk", "address")]
    found: dict[str, list[str]] = {}
    if followers:
        sent = OutboxMessage.objects.filter(destination__in=followers, subject__in=subjects)
        for subject, destination in sent.values_list("subject", "destination").distinct():
            found.setdefault(subject, []).append(destination)
    return found


def list_destinations(targets: Iterable[Target], now: datetime) -> list[str]:
    wanted = list(targets)
    return directory.read_directory(wanted).unique(wanted, now)
