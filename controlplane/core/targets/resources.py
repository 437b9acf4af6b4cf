"""Targets and routes as the API answers and the audit trail keeps them; secrets never."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from controlplane.core import canonical
from controlplane.core.canonical import timestamp
from controlplane.core.outbox import naming
from controlplane.core.targets import directory, reach
from controlplane.core.targets.directory import Directory
from controlplane.core.targets.models import Route, Target


def masked_url(url: str) -> str:
    """`https://hooks.example.org/…`: whose it is; the rest may be a secret."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "…"
    return f"{parts.scheme}://{parts.hostname or ''}{port}/…"


def target_settings(target: Target, known: Directory | None = None) -> dict[str, Any]:
    """What somebody decided about a target: what its kind has, and nothing else."""
    known = known or directory.read([target])
    common = {
        "name": target.name,
        "kind": target.kind,
        "description": target.description,
    }
    match target.kind:
        case Target.Kind.PERSON:
            return {
                **common,
                "user": target.user.username if target.user else None,
                "email": target.email,
                "slack_user_id": target.slack_user_id,
            }
        case Target.Kind.CHANNEL:
            url = masked_url(target.webhook_url) if target.address == "webhook" else None
            return {**common, "address": target.address, "webhook_url": url}
        case Target.Kind.ON_CALL:
            return {**common, **_rotation(target, known)}
    steps = [
        {"after_minutes": one.after_minutes, "target": one.target.name}
        for one in known.steps.get(target.pk, ())
    ]
    return {**common, "steps": steps}


def settings_digest(target: Target) -> str:
    """Return a digest of a target's settings: another one once they have changed."""
    return canonical.digest(target_settings(target))


def target_resources(
    targets: Iterable[Target], now: datetime, *, addresses: bool
) -> list[dict[str, Any]]:
    """Targets with whom they reach at this moment, in a few queries however many there are.

    Without `addresses` those of people are hidden: they are for signed-in people, not programs.
    """
    shown = list(targets)
    known = directory.read(shown)
    return [_resource(target, known, now, addresses=addresses) for target in shown]


def target_resource(target: Target, now: datetime, *, addresses: bool) -> dict[str, Any]:
    """One target with whom it reaches at this moment."""
    (found,) = target_resources([target], now, addresses=addresses)
    return found


def route_resource(route: Route) -> dict[str, Any]:
    return {
        "id": route.pk,
        "event": route.event,
        "scope": route.scope,
        "severity": route.severity,
        "target": route.target.name,
        "target_id": route.target_id,
    }


def _rotation(target: Target, known: Directory) -> dict[str, Any]:
    starts_at = target.rotation_starts_at
    return {
        "members": [person.name for person in known.members.get(target.pk, ())],
        "rotation_days": target.rotation_days,
        "rotation_starts_at": timestamp(starts_at) if starts_at else None,
        "time_zone": target.time_zone,
    }


def _resource(
    target: Target, known: Directory, now: datetime, *, addresses: bool
) -> dict[str, Any]:
    reached = reach.reached(target, known, now)
    settings = target_settings(target, known)
    resource = {
        "id": target.pk,
        **(settings if addresses else _hidden(settings)),
        "reaches": {
            "who": reached.who or None,
            "to": reach.masked(reached.to if addresses else map(naming.hidden, reached.to)),
            "why_not": reached.why or None,
        },
    }
    if target.kind == Target.Kind.ON_CALL:
        resource["on_duty"] = _on_duty(target, known, now)
    return resource


def _on_duty(target: Target, known: Directory, now: datetime) -> dict[str, Any] | None:
    person, turn = known.on_duty(target, now)
    if person is None or turn is None:
        return None
    since, until = timestamp(turn.since), timestamp(turn.until)
    return {"person": person.name, "since": since, "until": until}


def _hidden(settings: dict[str, Any]) -> dict[str, Any]:
    """The same without people's addresses: that there is one, but not which."""
    own = [name for name in ("email", "slack_user_id") if settings.get(name)]
    shown = {**settings, **dict.fromkeys(own, naming.HIDDEN)}
    if "address" in shown:
        shown["address"] = naming.hidden(shown["address"])
    return shown
