"""Services that add and remove exclusions, and report the effect on the budget."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core import authority, durations
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.reasons import find_text_problems
from slo.arithmetic.minutes import due_minute, end_of, last_ended, minute_of
from slo.evaluation.evaluator import load_status
from slo.models import Exclusion, Slo
from slo.models.objective import slo_resource

from . import services
from .permissions import SCOPE

ADVICE = "Enter what happened, such as the maintenance and its ticket."
REMOVAL_ADVICE = "Enter why it counts again."
MAX_DURATION = timedelta(days=90)
MAX_AHEAD = timedelta(days=90)
MAX_AGE = timedelta(days=400)
MAX_EXCLUSIONS = 500


@dataclass(frozen=True)
class ExclusionOutcome:
    """An exclusion just added or removed, and the SLO's error budget before and after."""

    exclusion: Exclusion
    before: dict[str, Any]
    after: dict[str, Any]


def add_exclusion(
    *, name: str, starts_at: datetime, ends_at: datetime, reason: str, actor: Actor, now: datetime
) -> ExclusionOutcome:
    """Exclude a time span, extended to whole minutes, from an SLO.

    Raise :class:`Forbidden`, :class:`NotFound`, :class:`InvalidInput` or :class:`Conflict`.
    """
    actor.require(SCOPE)
    authority.require(actor, Action.OVERRIDE, slo_resource(name))
    starts_at, ends_at = _extend_to_minutes(starts_at, ends_at, reason, now)
    with transaction.atomic():
        authority.require(actor, Action.OVERRIDE, slo_resource(name))
        slo = services.find_slo(name, lock=True)
        if Exclusion.objects.filter(slo=slo, removed_at__isnull=True).count() >= MAX_EXCLUSIONS:
            raise Conflict(f"There are already {MAX_EXCLUSIONS} exclusions. Remove some first.")
        before = _load_budget(slo, now)
        exclusion = Exclusion.objects.create(
            slo=slo,
            starts_at=starts_at,
            ends_at=ends_at,
            reason=reason.strip(),
            created_by=actor.label,
            created_at=now,
        )
        return _record_change("slo.exclusion_added", exclusion, before, reason, actor, now)


def remove_exclusion(
    *, name: str, exclusion_id: int, reason: str = "", actor: Actor, now: datetime
) -> ExclusionOutcome:
    """Remove an exclusion, so that its span counts again.

    Raise :class:`Forbidden`, :class:`NotFound` or :class:`InvalidInput`.
    """
    actor.require(SCOPE)
    if reason and (problems := find_text_problems(reason, called="reason", advice=REMOVAL_ADVICE)):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        authority.require(actor, Action.OVERRIDE, slo_resource(name))
        slo = services.find_slo(name, lock=True)
        rows = slo.exclusions.select_for_update().filter(pk=exclusion_id)
        exclusion = rows.filter(removed_at__isnull=True).first()
        if exclusion is None:
            raise NotFound("There is no such exclusion, or it is already removed.")
        before = _load_budget(slo, now)
        exclusion.removed_at, exclusion.removed_by = now, actor.label
        exclusion.save(update_fields=["removed_at", "removed_by"])
        return _record_change("slo.exclusion_removed", exclusion, before, reason, actor, now)


def _extend_to_minutes(
    starts_at: datetime, ends_at: datetime, reason: str, now: datetime
) -> tuple[datetime, datetime]:
    errors: dict[str, list[str]] = {}
    if problems := find_text_problems(reason, called="reason", advice=ADVICE):
        errors["reason"] = problems
    if ends_at <= starts_at:
        errors["ends_at"] = ["Must be later than the start."]
    elif ends_at - starts_at > MAX_DURATION:
        errors["ends_at"] = [f"At most {durations.format_readable(MAX_DURATION)} after the start."]
    if not now - MAX_AGE <= starts_at <= now + MAX_AHEAD:
        errors["starts_at"] = [
            f"Must be within the last {MAX_AGE.days} or the next {MAX_AHEAD.days} days."
        ]
    if errors:
        raise InvalidInput(errors)
    return end_of(last_ended(starts_at)), end_of(minute_of(ends_at))


def _load_budget(slo: Slo, now: datetime) -> dict[str, Any]:
    budget: dict[str, Any] = load_status(slo, end_of(due_minute(now)))["budget"]
    return budget


def _record_change(
    action: str,
    exclusion: Exclusion,
    before: dict[str, Any],
    reason: str,
    actor: Actor,
    now: datetime,
) -> ExclusionOutcome:
    """Write the audit row of an added or removed exclusion, given the SLO's budget `before`."""
    slo, after = exclusion.slo, _load_budget(exclusion.slo, now)
    notify_changed("slo", slo.name)
    span = {"id": exclusion.pk, "starts_at": exclusion.starts_at, "ends_at": exclusion.ends_at}
    audit.record(
        actor=actor,
        action=action,
        target=services.audit_target(slo.name),
        reason=reason.strip(),
        before={**span, "budget": before},
        after={**span, "budget": after},
        now=now,
    )
    return ExclusionOutcome(exclusion, before, after)
