"""Writes of targets and routes, for admins only; audited without secrets."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from controlplane.core import encryption
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox import services as outbox
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.roles import Power
from controlplane.core.scopes import SCOPES
from controlplane.notify.models.targets import EscalationStep, OnCallMember, Route, Target
from controlplane.notify.transports import destinations

from . import directory, fields, reach, usage
from .fields import TargetRequest
from .resources import settings_digest, target_settings

TARGETS_LOCK = 0x7A56E75  # arbitrary, unique among advisory locks
EVENT_PATTERN = re.compile(r"[a-z0-9_.*?-]{1,64}")
SEALED_SINCE = "0022_seal_webhook_urls"
SEALING_DELAY = timedelta(hours=1)
"""Time after an upgrade in which older processes, which can't read sealed URLs, may run."""

TEST_PAUSE = timedelta(seconds=10)
"""Minimum time between two test messages to a target."""


@dataclass(frozen=True)
class SentTest:
    """A test message to a target, whose outbox messages have the key `event_key`."""

    target: Target
    reach: reach.Reach
    event_key: str


@dataclass(frozen=True)
class NewSecret:
    """A secret generated for a channel, with the name of its field in the API; shown once."""

    name: str
    text: str
    help_text: str


def look_up(settings: Mapping[str, Any]) -> None:
    """Run slow checks of a target's settings, such as DNS; raise `InvalidInput` if one fails.

    Call this before the transaction of the change.
    """
    for transport in destinations.channel_transports():
        if transport.settings:
            transport.settings.look_up(settings)


@transaction.atomic
def create_target(
    *, asked: TargetRequest, actor: Actor, now: datetime
) -> tuple[Target, NewSecret | None]:
    """Create a target; return it with the secret generated for it, if any.

    Raises :class:`InvalidInput` with all errors, and :class:`Forbidden` unless the actor is a
    signed-in admin.
    """
    _require_admin_and_lock(actor)
    checked = fields.check_target(asked, None)
    target = Target(created_at=now)
    secret = save_target(target, checked, asked)
    _record_audit("target.created", target, actor, now, after=target_settings(target))
    return target, secret


@transaction.atomic
def change_target(
    *, target_id: int, asked: TargetRequest, seen: str = "", actor: Actor, now: datetime
) -> tuple[Target, NewSecret | None]:
    """Replace a target's settings; return the target, and the secret generated for it, if any.

    Omitted settings are emptied, except a channel's secrets. Unacknowledged escalations are checked
    again at once. Raises :class:`Conflict` if the target no longer has the :func:`settings_digest`
    `seen`, because somebody else has changed it.
    """
    _require_admin_and_lock(actor)
    target = get_target(target_id)
    before, values_before = target_settings(target), _stored_values(target)
    if seen not in ("", settings_digest(target)):
        raise Conflict("Someone else changed this target. Open it again.")
    checked = fields.check_target(asked, target)
    secret = save_target(target, checked, asked)
    after, values = target_settings(target), _stored_values(target)
    if before == after and values_before == values and secret is None:
        return target, None
    for one in destinations.channel_fields():  # The audit log names changed secrets only.
        if one.is_secret and values_before.get(one.name, "") != values.get(one.name, ""):
            after[f"{one.name}_changed"] = True
    if secret is not None:
        after[f"{secret.name}_changed"] = True
    Escalation.objects.filter(closed_at=None, acknowledged_at=None).update(next_at=now)
    _record_audit("target.changed", target, actor, now, before=before, after=after)
    return target, secret


@transaction.atomic
def remove_target(*, target_id: int, actor: Actor, now: datetime) -> None:
    """Remove an unused target; raise :class:`Conflict` with the list of its uses."""
    _require_admin_and_lock(actor)
    target = get_target(target_id)
    if target.name in SEVERITIES and target.kind == Target.Kind.ESCALATION:
        raise Conflict(
            f"{target.name} is the escalation of {target.name} messages. It can be changed, but not"
            " removed."
        )
    users = usage.list_uses([target])[target.pk]
    if users:
        raise Conflict(
            f"{target.name} is used by {', '.join(users)}. Remove it there first.", used_by=users
        )
    before = target_settings(target)
    target.delete()
    _record_audit("target.removed", target, actor, now, before=before)


@transaction.atomic
def send_test(*, target_id: int, actor: Actor, now: datetime) -> SentTest:
    """Send a test message to a target.

    Raises :class:`Conflict` if it reaches nobody, and :class:`TooManyRequests` within `TEST_PAUSE`
    of the target's previous test.
    """
    actor.require_power(Power.ADMINISTER)
    target = get_target(target_id)
    _require_test_pause(target, now)
    reached = reach.reach_from(target, directory.read_directory([target]), now)
    if not reached.to:
        raise Conflict(f"{target.name} reaches no one: {reached.why}.")
    after = {"to": destinations.describe_destinations(reached.to)}
    entry = _record_audit("target.tested", target, actor, now, after=after)
    event_key = f"audit:{entry.pk}"
    outbox.announce(
        event="target.test",
        event_key=event_key,
        facts={
            "target": target.name,
            "by": actor.label,
            "said": "Nothing to do. This is only a test.",
            "path": "/targets/",
        },
        to=reached.to,
        now=now,
    )
    return SentTest(target, reached, event_key)


def _require_test_pause(target: Target, now: datetime) -> None:
    """Raise :class:`TooManyRequests` if the target was tested within `TEST_PAUSE`."""
    tests = AuditEntry.objects.filter(action="target.tested", target=f"target:{target.name}")
    last = tests.order_by("-id").values_list("at", flat=True).first()
    if last is not None and (left := last + TEST_PAUSE - now) > timedelta(0):
        seconds = math.ceil(left.total_seconds())
        detail = f"{target.name} was tested a moment ago. Try again in {seconds} s."
        raise TooManyRequests(detail, retry_after=seconds)


@transaction.atomic
def add_route(
    *,
    target: fields.Reference,
    event: str = "",
    scope: str = "",
    severity: str = "",
    actor: Actor,
    now: datetime,
) -> Route:
    """Route messages of an event, scope and severity to a target.

    `event` may be a pattern, such as `switch.*`; an empty scope or severity matches any. Raises
    :class:`InvalidInput`, and :class:`Conflict` if the route exists.
    """
    _require_admin_and_lock(actor)
    found, columns = check_route(target, event, scope, severity)
    if Route.objects.filter(**columns, target=found).exists():
        raise Conflict(f"These messages already go to {found.name}.")
    route = Route.objects.create(**columns, target=found, created_at=now)
    _record_audit("route.created", found, actor, now, after=describe_route(route))
    return route


def check_route(
    target: fields.Reference, event: str, scope: str, severity: str
) -> tuple[Target, dict[str, str]]:
    """Return a route's target and its other columns; raise :class:`InvalidInput`."""
    event = event.strip() or "*"
    errors = fields.Errors(list)
    if not EVENT_PATTERN.fullmatch(event):
        errors["event"].append(
            "Use lower-case letters, dots, * and ?, such as switch.engaged, switch.* or *."
        )
    if scope and scope not in SCOPES:
        errors["scope"].append(
            f"Leave empty for any scope, or use one of: {', '.join(SCOPES.names)}."
        )
    if severity and severity not in SEVERITIES:
        errors["severity"].append(
            f"Leave empty for any severity, or use one of: {', '.join(SEVERITIES)}."
        )
    found = fields.find_target(target)
    if found is None:
        errors["target"].append(f"There is no target {target}.")
    if errors or found is None:
        raise InvalidInput(errors)
    return found, {"event": event, "scope": scope, "severity": severity}


@transaction.atomic
def remove_route(*, route_id: int, actor: Actor, now: datetime) -> None:
    """Remove a route; messages already in the outbox are still delivered."""
    _require_admin_and_lock(actor)
    route = Route.objects.select_related("target").filter(pk=route_id).first()
    if route is None:
        raise NotFound(f"There is no route {route_id}.")
    before = describe_route(route)
    route.delete()
    _record_audit("route.removed", route.target, actor, now, before=before)


def get_target(target_id: int) -> Target:
    target = Target.objects.select_related("user").filter(pk=target_id).first()
    if target is None:
        raise NotFound(f"There is no target {target_id}.")
    return target


def _require_admin_and_lock(actor: Actor) -> None:
    """Raise unless the actor is an admin; take the lock that serializes changes of targets."""
    actor.require_power(Power.ADMINISTER)
    lock_targets()


def lock_targets() -> None:
    """Take the lock that serializes changes of targets, until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [TARGETS_LOCK])


def save_target(
    target: Target, checked: fields.CheckedTarget, request: TargetRequest
) -> NewSecret | None:
    """Write a validated target with its members and steps; return a generated secret, if any."""
    former = destinations.transport_of(target)
    for name, value in checked.columns.items():
        setattr(target, name, value)
    own, secret = destinations.transport_of(target), None
    if former is not None and former != own and former.settings:
        former.settings.clear(target)
    spec = own.settings if own is not None else None
    if spec is not None and request.secrets_later:
        spec.write_visible(target, request.settings)
    elif spec is not None and (text := spec.write(target, request.settings)):
        secret = NewSecret(spec.shown_once, text, spec.shown_once_help)
    target.save()
    OnCallMember.objects.filter(rotation=target).delete()
    OnCallMember.objects.bulk_create(
        OnCallMember(rotation=target, position=position, person=person)
        for position, person in enumerate(checked.members)
    )
    EscalationStep.objects.filter(escalation=target).delete()
    EscalationStep.objects.bulk_create(
        EscalationStep(escalation=target, position=position, after_minutes=after, target=to)
        for position, (after, to) in enumerate(checked.steps)
    )
    return secret


def _stored_values(target: Target) -> dict[str, str]:
    transport = destinations.transport_of(target)
    return transport.settings.values(target) if transport and transport.settings else {}


def _record_audit(action: str, target: Target, actor: Actor, now: datetime, **changed: Any) -> Any:
    return audit.record(
        actor=actor, action=action, target=f"target:{target.name}", now=now, **changed
    )


@transaction.atomic
def seal_webhook_urls(now: datetime) -> int:
    """Encrypt webhook URLs that an earlier release stored in plain text; return their number.

    A restored backup may contain such URLs, too. Does nothing in the first hour after the upgrade
    that introduced encryption.
    """
    migration = MigrationRecorder.Migration.objects.filter(app="core", name=SEALED_SINCE)
    if not migration.filter(applied__lte=now - SEALING_DELAY).exists():
        return 0
    with_url = Target.objects.select_for_update(no_key=True).exclude(webhook_url="").order_by("pk")
    plain = with_url.exclude(webhook_url__startswith=encryption.SEALED_PREFIX)
    for target in plain:
        target.save(update_fields=["webhook_url"])
    return len(plain)


def describe_route(route: Route) -> dict[str, Any]:
    return {
        "id": route.pk,
        "event": route.event,
        "scope": route.scope,
        "severity": route.severity,
        "target": route.target.name,
        "target_id": route.target_id,
    }
