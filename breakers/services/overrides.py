"""Setting, removing and expiring overrides of breakers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import Combinable

from breakers import publication
from breakers.models import Override
from controlplane.core import durations
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.core.instances.exports import INSTANCES, NO_FINAL_REPORT
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.outbox import services as outbox
from controlplane.core.reasons import find_reason_problems, find_text_problems
from controlplane.core.sql import fetch_all

from . import override_endings, registry
from .permissions import SCOPE, get_set_action, require_end, require_set

MIN_DURATION, MAX_DURATION = timedelta(seconds=1), timedelta(days=30)
RESET_DURATION = "5m"
"""Time for which a reset is published; each instance applies it once."""
EXPIRY = system_actor("overrides")
STRAGGLERS_SHOWN = 20
MAX_AT_ONCE = 200
WARNING_MODES = (Override.Mode.FORCED_OPEN, Override.Mode.FORCED_CLOSED)
APPLIED = f"""
    SELECT wanted.place,
           count(i.id) FILTER (WHERE i.config_version BETWEEN wanted.version AND r.version),
           count(i.id),
           (array_agg(i.id ORDER BY i.id) FILTER (
               WHERE i.id IS NOT NULL
                 AND coalesce(i.config_version, -1) NOT BETWEEN wanted.version AND r.version
           ))[1:%(most)s]
    FROM unnest(%(callers)s::text[], %(versions)s::bigint[])
         WITH ORDINALITY AS wanted (caller, version, place)
    CROSS JOIN breakers_registry r
    LEFT JOIN {INSTANCES} ON i.service = wanted.caller AND i.reported_at >= %(fresh)s
         AND {NO_FINAL_REPORT}
    GROUP BY wanted.place ORDER BY wanted.place
"""  # noqa: S608


@dataclass(frozen=True)
class OverrideAcknowledgement:
    """The number of instances that apply an override: `applied` of `instances`.

    Only reporting instances count. `stragglers` are the ids of those that don't
    apply the override, at most 20.
    """

    applied: int
    instances: int
    stragglers: tuple[str, ...]

    @property
    def by_all(self) -> bool:
        """True if every instance that reports applies the override, and at least one reports."""
        return 0 < self.instances == self.applied


@retry_if_ended
def set_override(
    *,
    caller: str,
    callee: str,
    mode: str,
    reason: str,
    expires_in: str | None = None,
    actor: Actor,
    now: datetime,
) -> Override:
    """Force `mode` upon the breakers of all instances, replacing the live override.

    `expires_in` is a duration from `1s` to `30d`; only a reset needs none. Raise
    :class:`Forbidden`, :class:`NotFound` or :class:`InvalidInput`.
    """
    actor.require(SCOPE)
    lasts = _validate(mode, reason, expires_in)
    with transaction.atomic():
        is_stop = get_set_action(mode) == Action.ENGAGE
        head = publication.lock() if is_stop else publication.lock_with_teams()
        dependency = registry.lock_dependency(caller, callee)
        replaced = override_endings.lock_live_override(dependency)
        require_set(actor, mode, dependency)
        if replaced is not None:
            if replaced.mode == mode and now + lasts < replaced.expires_at:
                require_end(actor, replaced, dependency)  # It ends earlier.
            override_endings.end_override(replaced, override_endings.REPLACED, actor=actor, now=now)
        override = Override.objects.create(
            dependency=dependency,
            mode=mode,
            reason=reason.strip(),
            set_by_type=actor.type,
            set_by_name=actor.name,
            set_at=now,
            expires_at=now + lasts,
            version=publication.advance(head, now, dependency),
        )
        notify_changed("breakers", dependency.name)
        _record_set(override, replaced, actor, now)
        return override


@retry_if_ended
def remove_override(
    *, caller: str, callee: str, reason: str = "", actor: Actor, now: datetime
) -> Override:
    """End the dependency's live override.

    Raise :class:`Forbidden`, or :class:`NotFound` if there is none.
    """
    actor.require(SCOPE)
    if reason and (problems := find_text_problems(reason, called="reason")):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        head = publication.lock_with_teams()
        dependency = registry.lock_dependency(caller, callee)
        override = override_endings.lock_live_override(dependency)
        if override is None:
            raise NotFound(f"{dependency.name} has no override.")
        require_end(actor, override, dependency)
        override_endings.end_override(override, override_endings.REMOVED, actor=actor, now=now)
        publication.advance(head, now, dependency)
        notify_changed("breakers", dependency.name)
        override_endings.record_end(
            override, dependency, reason=reason.strip(), actor=actor, now=now
        )
        return override


def expire_due_overrides(now: datetime) -> int:
    """End the overrides that have expired, each in its own transaction; return how many."""
    due = past_expiry(now).order_by("expires_at").values_list("pk", flat=True)
    return sum(_expire_override(pk, now) for pk in due[:MAX_AT_ONCE])


def past_expiry(now: datetime | Combinable) -> QuerySet[Override]:
    """Select the live overrides that have expired; `now` is a time or a database expression."""
    return Override.objects.filter(ended_at__isnull=True, expires_at__lte=now)


def list_acknowledgements(
    versions: Iterable[tuple[str, int]], now: datetime
) -> list[OverrideAcknowledgement]:
    """Return the acknowledgement of each override, given as caller and version. Makes one query."""
    pairs = list(versions)
    if not pairs:
        return []
    values = {
        "callers": [caller for caller, _ in pairs],
        "versions": [version for _, version in pairs],
        "fresh": now - INSTANCE_CADENCE,
        "most": STRAGGLERS_SHOWN,
    }
    return [
        OverrideAcknowledgement(applied, instances, tuple(behind or ()))
        for _, applied, instances, behind in fetch_all(APPLIED, values)
    ]


def _validate(mode: str, reason: str, expires_in: str | None) -> timedelta:
    errors: dict[str, list[str]] = {}
    lasts = MIN_DURATION
    if mode not in Override.Mode.values:
        errors["mode"] = [f"Must be one of {', '.join(Override.Mode.values)}."]
    if problems := find_reason_problems(reason):
        errors["reason"] = problems
    if not expires_in and mode == Override.Mode.RESET:
        expires_in = RESET_DURATION
    try:
        lasts = durations.parse(expires_in or "")
        if not MIN_DURATION <= lasts <= MAX_DURATION:
            errors["expires_in"] = [f"Must be at most {MAX_DURATION.days} days."]
    except ValueError as error:
        errors["expires_in"] = [str(error)]
    if errors:
        raise InvalidInput(errors)
    return lasts


def _expire_override(pk: int, now: datetime) -> bool:
    with transaction.atomic():
        head = publication.lock()
        override = (
            Override.objects.select_for_update(of=("self",))
            .select_related("dependency")
            .filter(pk=pk, ended_at__isnull=True, expires_at__lte=now)
            .first()
        )
        if override is None:  # It was ended or replaced meanwhile.
            return False
        dependency = override.dependency
        override_endings.end_override(override, override_endings.EXPIRED, actor=EXPIRY, now=now)
        publication.advance(head, now, dependency)
        notify_changed("breakers", dependency.name)
        override_endings.record_end(override, dependency, actor=EXPIRY, now=now)
        return True


def _record_set(override: Override, replaced: Override | None, actor: Actor, now: datetime) -> None:
    dependency = override.dependency
    entry = audit.record(
        actor=actor,
        action="override.replaced" if replaced else "override.set",
        target=dependency.resource,
        reason=override.reason,
        before=override_endings.audit_state(replaced) if replaced else None,
        after=override_endings.audit_state(override),
        now=now,
    )
    outbox.announce(
        event="override.set",
        event_key=f"audit:{entry.pk}",
        severity="warning" if override.mode in WARNING_MODES else "info",
        subject=dependency.resource,
        resource=dependency.resource,
        facts={
            **override_endings.override_facts(override, dependency),
            "lasts": durations.format_readable(override.expires_at - override.set_at),
            "replaces": replaced.mode if replaced else "",
        },
        now=now,
    )
