"""From an event to destinations: which routes match, and where their targets are reached now.

A destination is a text that a transport understands: `slack` (what the environment names),
`slack:C024BE91L`, `email:ops@example.org`, `webhook:7` (the target's id).
"""

from collections.abc import Iterable
from datetime import datetime
from fnmatch import fnmatchcase

from controlplane.core.targets.models import Route, Target


def routed(event: str, scope: str, severity: str, now: datetime) -> list[str]:
    """Every destination, once, that some route leads this event to."""
    matching = [
        route.target
        for route in Route.objects.select_related("target").order_by("id")
        if fnmatchcase(event, route.event)
        and route.scope in ("", scope)
        and route.severity in ("", severity)
    ]
    return unique(matching, now)


def unique(targets: Iterable[Target], now: datetime) -> list[str]:
    """The destinations of several targets, each once, in order."""
    found = (destination for target in targets for destination in destinations(target, now))
    return list(dict.fromkeys(found))


def destinations(target: Target, now: datetime) -> list[str]:
    """Where a target is reached at this moment; empty if it is not configured."""
    if target.kind == Target.Kind.CHANNEL:
        if target.address == "webhook":
            return [f"webhook:{target.pk}"]
        return [target.address] if target.address else []
    return []
