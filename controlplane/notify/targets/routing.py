"""Routing of events to the destinations of matching targets.

A destination is a text that a transport understands: `slack` (the configured channel),
`slack:C024BE91L`, `email:ops@example.org`, or `webhook:7` (the id of a target). Routing takes at
most three queries, because it runs while contended locks are held. For what a team may own there
are three more: the channels of teams and, if there are any, the teams and the messages already
sent.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase

from controlplane.core import authority
from controlplane.core.message_templates import incident_action_of
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import TRANSPORTS

from . import directory, team_contacts


@dataclass
class _Cache:
    """Destinations by event, scope and severity, and channels by the slugs of their teams."""

    routed: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    channels: Mapping[str, list[str]] | None = None


_cache: ContextVar[_Cache | None] = ContextVar("_cache", default=None)


@contextmanager
def cached_routing() -> Iterator[None]:
    """Context manager: in the block, routes and the channels of teams are read only once."""
    before = _cache.set(_cache.get() or _Cache())
    try:
        yield
    finally:
        _cache.reset(before)


def find_destinations(
    event: str, scope: str, severity: str, now: datetime, resource: str = ""
) -> list[str]:
    """Return the destinations to which routes send a matching event, without duplicates.

    The channels of the owner of `resource` are among them. On-call services are left out unless the
    event opens an incident.
    """
    found = _read_routed(event, scope, severity, now)
    found = _keep_suitable(found, event, severity)
    if resource:
        found += owner_channels(event, severity, [resource], now).get(resource, [])
    return list(dict.fromkeys(found))


def _read_routed(event: str, scope: str, severity: str, now: datetime) -> list[str]:
    cache, key = _cache.get(), (event, scope, severity)
    if cache is not None and key in cache.routed:
        return list(cache.routed[key])
    leading = Route.objects.filter(scope__in=("", scope), severity__in=("", severity))
    matching = [
        route.target
        for route in leading.select_related("target__user").order_by("id")
        if fnmatchcase(event, route.event)
    ]
    found = directory.read_directory(matching).unique(matching, now)
    if cache is not None:
        cache.routed[key] = list(found)
    return found


def owner_channels(
    event: str, severity: str, resources: Iterable[str], now: datetime
) -> dict[str, list[str]]:
    """Return the usable channels of the owners for an event, by resource, in two queries.

    They are those of the nearest team up the chain that has any; on-call services don't count
    unless the event opens an incident.
    """
    found: dict[str, list[str]] = {}
    channels = read_channels(now)
    if not channels:
        return found
    teams = authority.read_teams()
    for resource in resources:
        for team in teams.chain_of(resource):
            if suitable := _keep_suitable(channels.get(team.slug, ()), event, severity):
                found[resource] = suitable
                break
    return found


def _keep_suitable(found: Iterable[str], event: str, severity: str) -> list[str]:
    """Return the destinations without on-call services, unless the event opens an incident."""
    if severity != "info" and incident_action_of(event) == "trigger":
        return list(found)
    return [one for one in found if not destinations.transport_for(one).tracks_incidents]


def read_channels(now: datetime) -> Mapping[str, list[str]]:
    """Return the usable channels of all teams that have any, by slug."""
    cache = _cache.get()
    if cache is not None and cache.channels is not None:
        return cache.channels
    found = team_contacts.read_channels(now)
    if cache is not None:
        cache.channels = found
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


def find_former_channels(subject: str, now: datetime) -> list[str]:
    """Return the channels of teams that were sent a message about a subject, but on-call services.

    If its owner changes, they must still be sent what becomes of it.
    """
    known = {one for to in read_channels(now).values() for one in to}
    channels = _keep_suitable(known, "", "info")
    if not channels:
        return []
    sent = OutboxMessage.objects.filter(destination__in=channels, subject=subject)
    return list(sent.values_list("destination", flat=True).distinct())


def list_destinations(targets: Iterable[Target], now: datetime) -> list[str]:
    wanted = list(targets)
    return directory.read_directory(wanted).unique(wanted, now)
