"""Targets and routes as the API answers and the audit trail keeps them; secrets never."""

from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from controlplane.core.canonical import timestamp
from controlplane.core.targets import reach, routing
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


def target_settings(target: Target) -> dict[str, Any]:
    """What somebody decided about a target: what its kind has, and nothing else."""
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
            return {**common, **_rotation(target)}
    steps = target.steps.select_related("target").order_by("position")
    return {
        **common,
        "steps": [{"after_minutes": one.after_minutes, "target": one.target.name} for one in steps],
    }


def _rotation(target: Target) -> dict[str, Any]:
    starts_at = target.rotation_starts_at
    members = target.members.select_related("person").order_by("position")
    return {
        "members": [member.person.name for member in members],
        "rotation_days": target.rotation_days,
        "rotation_starts_at": timestamp(starts_at) if starts_at else None,
        "time_zone": target.time_zone,
    }


def target_resource(target: Target, now: datetime) -> dict[str, Any]:
    """A target with whom it reaches at this moment."""
    reached = reach.reach(target, now)
    resource = {
        "id": target.pk,
        **target_settings(target),
        "reaches": {
            "who": reached.who or None,
            "to": reach.masked(reached.to),
            "why_not": reached.why or None,
        },
    }
    if target.kind == Target.Kind.ON_CALL:
        person, turn = routing.on_duty(target, now)
        resource["on_duty"] = (
            {
                "person": person.name,
                "since": timestamp(turn.since),
                "until": timestamp(turn.until),
            }
            if person and turn
            else None
        )
    return resource


def route_resource(route: Route) -> dict[str, Any]:
    return {
        "id": route.pk,
        "event": route.event,
        "scope": route.scope,
        "severity": route.severity,
        "target": route.target.name,
        "target_id": route.target_id,
    }
