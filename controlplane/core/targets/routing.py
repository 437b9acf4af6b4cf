"""From an event to destinations: which routes match, and where their targets are reached now.

A destination is a text that a transport understands: `slack` (what the environment names),
`slack:C024BE91L`, `email:ops@example.org`, `webhook:7` (the target's id).
"""

from collections.abc import Iterable
from datetime import datetime
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from controlplane.core.targets import duty
from controlplane.core.targets.models import EscalationStep, OnCallMember, Route, Target

LONGEST_DESTINATION = 120  # The outbox has no room for more.


def routed(event: str, scope: str, severity: str, now: datetime) -> list[str]:
    """Every destination, once, that some route leads this event to."""
    matching = [
        route.target
        for route in Route.objects.select_related("target__user").order_by("id")
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
    found = behind(target, now)
    if found is None:
        return []
    if found.kind == Target.Kind.CHANNEL:
        return _channel(found)
    return _person(found) if found.kind == Target.Kind.PERSON else []


def behind(target: Target, now: datetime) -> Target | None:
    """The person or channel that stands for a target at this moment; None if nobody does.

    For a rotation that is whoever is on duty, for an escalation what its first step leads to.
    """
    if target.kind == Target.Kind.ON_CALL:
        return on_duty(target, now)[0]
    if target.kind == Target.Kind.ESCALATION:
        steps = EscalationStep.objects.select_related("target__user")
        first = steps.filter(escalation=target).order_by("position").first()
        return behind(first.target, now) if first else None
    return target


def on_duty(rotation: Target, now: datetime) -> tuple[Target | None, duty.Turn | None]:
    """The person on duty in a rotation and their turn; None for both if it has no members."""
    rows = OnCallMember.objects.select_related("person__user")
    people = [row.person for row in rows.filter(rotation=rotation).order_by("position")]
    turn = duty.turn(
        len(people),
        rotation.rotation_days or duty.USUAL_DAYS,
        rotation.rotation_starts_at or rotation.created_at,
        zone_of(rotation),
        now,
    )
    return (people[turn.member], turn) if turn else (None, None)


def zone_of(rotation: Target) -> ZoneInfo:
    """Its time zone. One that this server no longer knows must not leave anybody untold: UTC."""
    try:
        return ZoneInfo(rotation.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def _channel(channel: Target) -> list[str]:
    if channel.address == "webhook":
        return [f"webhook:{channel.pk}"] if channel.webhook_url else []
    return [channel.address] if channel.address else []


def _person(person: Target) -> list[str]:
    """Slack and e-mail: the target's own, else its account's; none if that is closed."""
    account = person.user
    if account is not None and not account.is_active:
        return []
    slack = person.slack_user_id or (account.slack_user_id if account else "")
    email = person.email or (account.email if account else "")
    found = [f"slack:{slack}"] if slack else []
    found += [f"email:{email}"] if email else []
    return [destination for destination in found if len(destination) <= LONGEST_DESTINATION]
