"""API representations of targets and routes, also used in the audit log. Secrets are masked."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from controlplane.core import canonical
from controlplane.core.canonical import timestamp
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from controlplane.notify.transports.base import TRANSPORTS

from . import destination_names, directory, reach
from .directory import Directory


def target_settings(target: Target, known: Directory | None = None) -> dict[str, Any]:
    """Return the settings of a target, depending on its kind."""
    known = known or directory.read_directory([target])
    common = {"name": target.name, "kind": target.kind, "description": target.description}
    match target.kind:
        case Target.Kind.PERSON:
            return {
                **common,
                "user": target.user.username if target.user else None,
                **{column: getattr(target, column) for column in _person_columns()},
            }
        case Target.Kind.CHANNEL:
            return {**common, "address": target.address, **destinations.masked_settings(target)}
        case Target.Kind.ON_CALL:
            starts_at = target.rotation_starts_at
            return {
                **common,
                "members": [person.name for person in known.members.get(target.pk, ())],
                "rotation_days": target.rotation_days,
                "rotation_starts_at": timestamp(starts_at) if starts_at else None,
                "time_zone": target.time_zone,
            }
    steps = [
        {"after_minutes": one.after_minutes, "target": one.target.name}
        for one in known.steps.get(target.pk, ())
    ]
    return {**common, "steps": steps}


def settings_digest(target: Target) -> str:
    """Return a hash of a target's settings, to detect changes."""
    return canonical.digest(target_settings(target))


def target_resources(
    targets: Iterable[Target], now: datetime, *, addresses: bool
) -> list[dict[str, Any]]:
    """Return targets with their reach at `now`, with a fixed number of queries.

    Without `addresses`, personal addresses are hidden: only signed-in people may see them.
    """
    shown = list(targets)
    known = directory.read_directory(shown)
    return [_target_resource(target, known, now, addresses=addresses) for target in shown]


def target_resource(target: Target, now: datetime, *, addresses: bool) -> dict[str, Any]:
    (found,) = target_resources([target], now, addresses=addresses)
    return found


def _target_resource(
    target: Target, known: Directory, now: datetime, *, addresses: bool
) -> dict[str, Any]:
    reached = reach.reach_from(target, known, now)
    settings = target_settings(target, known)
    resource = {"id": target.pk, **settings}
    if not addresses:
        own = [name for name in _person_columns() if settings.get(name)]
        resource |= dict.fromkeys(own, destination_names.HIDDEN)
        if "address" in settings:
            resource["address"] = destination_names.hide_address(settings["address"])
    if target.kind == Target.Kind.CHANNEL:
        transport = destinations.transport_of(target)
        resource["transport"] = transport.key if transport else None
        # The settings of other transports are null.
        names = [field.name for field in destinations.channel_fields() if not field.is_flag]
        resource |= {name: None for name in names if name not in settings}
    resource |= {
        "reaches": {
            "who": reached.who or None,
            "to": destinations.describe_destinations(
                reached.to if addresses else map(destination_names.hide_address, reached.to)
            ),
            "why_not": reached.why or None,
        }
    }
    if target.kind == Target.Kind.ON_CALL:
        resource["on_duty"] = None
        if duty := known.on_duty(target, now):
            person, turn = duty
            since, until = timestamp(turn.since), timestamp(turn.until)
            resource["on_duty"] = {"person": person.name, "since": since, "until": until}
    return resource


def _person_columns() -> list[str]:
    return [one.person_column for one in TRANSPORTS.values() if one.check_person]
