"""Routing: from an event to the destinations of the targets that match.

A destination is a text that a transport understands: `slack` (the configured channel),
`slack:C024BE91L`, `email:ops@example.org`, `webhook:7` (the target's id). Routing happens under
contended locks, so it takes three queries at most, whatever the number of targets.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from fnmatch import fnmatchcase

from controlplane.core.message_templates import incident_action_of
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.transports import registry
from controlplane.notify.transports.base import TRANSPORTS

from . import directory

_read: ContextVar[dict[tuple[str, str, str], list[str]] | None] = ContextVar("_read", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """Cache the routing of each event, scope and severity within the block.

    Meant for blocks of a few seconds that route many messages.
    """
    before = _read.set({})
    try:
        yield
    finally:
        _read.reset(before)


def routed(event: str, scope: str, severity: str, now: datetime) -> list[str]:
    """Return the destinations of the routes that match an event, each once."""
    known, wanted = _read.get(), (event, scope, severity)
    if known is None:
        return _routed(event, scope, severity, now)
    if wanted not in known:
        known[wanted] = _routed(event, scope, severity, now)
    return list(known[wanted])


def _routed(event: str, scope: str, severity: str, now: datetime) -> list[str]:
    leading = Route.objects.filter(scope__in=("", scope), severity__in=("", severity))
    matching = [
        route.target
        for route in leading.select_related("target__user").order_by("id")
        if fnmatchcase(event, route.event)
    ]
    found = directory.read(matching).unique(matching, now)
    starts_incident = severity != "info" and incident_action_of(event) == "trigger"
    return [one for one in found if starts_incident or not registry.tracks_incidents(one)]


def incident_followers(subjects: Collection[str]) -> dict[str, list[str]]:
    """Return, by subject, the on-call services that were sent a message about it.

    A service that tracks incidents has to be sent their end, whatever the routes.
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


def unique(targets: Iterable[Target], now: datetime) -> list[str]:
    """Return the destinations of several targets, each once, in order."""
    wanted = list(targets)
    return directory.read(wanted).unique(wanted, now)


def destinations(target: Target, now: datetime) -> list[str]:
    """Return the destinations of a target at `now`; empty if none is configured."""
    return unique([target], now)
