"""Functions that start, cancel and schedule drills, and mark instances."""

import secrets
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core import authority, durations, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.jobs import control
from controlplane.core.roles import POWERS_OF, Power
from switches import publication
from switches.drills import transitions
from switches.drills.job import describe_stopped, plan_steps
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule, Publication
from switches.scopes import GLOBAL, join_words, question_fields
from switches.services.registration import identify, lock_switch, register_and_lock

from . import patterns

ADVICE = "Enter the purpose, for example “before the sale weekend”."
MAX_ROUND_DAYS = 365
HOW_TO_MARK = (
    "There are no drill instances. Add some on the Drills page, or by "
    'POST /api/v1/drills/instances/ {"pattern": "core/canary-1"}; '
    "core/* adds all instances of core."
)


def begin_drill(
    *, scope: str, key: str, mode: str = live_drills.LIVE, reason: str, actor: Actor, now: datetime
) -> Drill:
    """Start a drill of a switch on the marked instances; mode `dry` only counts them.

    A drill in mode `emergency` passes once somebody engages the switch by an emergency order.
    Raise :class:`InvalidInput` for the global switch. Raise :class:`Conflict` if the switch is
    engaged, ramping or being drilled, or if no instance is marked.
    """
    actor.require("switches:write")
    check_drillable(scope, key, mode, reason)
    with transaction.atomic():
        authority.require(actor, Action.ENGAGE, identify(scope, key))
        publication.lock()
        return create_drill(scope, key, mode, reason.strip(), actor, now)


def begin_and_schedule(
    *, scope: str, key: str, mode: str, reason: str, every: str | None, actor: Actor, now: datetime
) -> Drill:
    """Start a drill and, if `every` is given, schedule it, in one transaction."""
    with transaction.atomic():
        if every is not None:  # Before the audit lock, which starting the drill takes.
            authority.require(actor, Action.EDIT, identify(scope, key))
            publication.lock()
        arguments = {"scope": scope, "key": key, "mode": mode, "reason": reason}
        drill = begin_drill(**arguments, actor=actor, now=now)
        if every is not None:
            schedule_drill(**arguments, every=every, actor=actor, now=now)
        return drill


def check_drillable(scope: str, key: str, mode: str, reason: str) -> None:
    """Raise :class:`InvalidInput` for the global switch, or an invalid id, mode or reason."""
    identify(scope, key)
    errors: dict[str, list[str]] = {}
    if scope == GLOBAL.name:
        others = join_words(list(question_fields()))
        errors["switch"] = [f"The global switch can't be drilled. Choose {others}."]
    if mode not in live_drills.MODES:
        errors["mode"] = [f"Must be one of {', '.join(live_drills.MODES)}."]
    if problems := reasons.find_text_problems(reason, called="reason", advice=ADVICE):
        errors["reason"] = problems
    if errors:
        raise InvalidInput(errors)


def create_drill(
    scope: str,
    key: str,
    mode: str,
    reason: str,
    actor: Actor,
    now: datetime,
    *,
    job_key: str | None = None,
) -> Drill:
    """Start a drill; the caller has locked the :class:`Publication` row.

    `job_key` identifies the occurrence of a scheduled drill, so that it is started only once. Raise
    :class:`Conflict` if the drill can't start or has started already.
    """
    switch = register_and_lock(scope, key, now=now)
    episode, under_way = switch.episode, live_drills.find_live_drill(switch.pk)
    if episode is not None:
        raise Conflict(describe_stopped(episode.state), state=episode.state.value)
    if under_way is not None:
        raise Conflict(f"A drill of {switch.pk} is already running.", drill=under_way.pk)
    if mode != live_drills.EMERGENCY and not DrillMark.objects.exists():
        raise Conflict(HOW_TO_MARK)
    job = control.create_job(
        kind=live_drills.KIND,
        subject=switch.pk,
        steps=plan_steps(mode),
        reason=reason,
        actor=actor,
        now=now,
        key=job_key,
    )
    if job is None:
        raise Conflict(f"This drill of {switch.pk} has already started.")
    scheduled = job_key is not None
    drill = Drill.objects.create(
        job=job, switch=switch, mode=mode, scheduled=scheduled, salt=secrets.token_hex(8)
    )
    transitions.record_audit(
        "drill.begun", switch, drill, actor, now, reason=reason, scheduled=scheduled
    )
    if mode == live_drills.EMERGENCY:
        transitions.request_order(switch, drill, reason, actor, now)
    return drill


def cancel_drill(*, drill_id: int, reason: str, actor: Actor, now: datetime) -> Drill:
    """Cancel a drill as neither passed nor failed. Raise :class:`Conflict` if it has ended."""
    if not Drill.objects.filter(pk=drill_id).exists():
        raise NotFound(f"There is no drill {drill_id}.")
    control.intervene(job_id=drill_id, verb="cancel", reason=reason, actor=actor, now=now)
    return Drill.objects.select_related("job").get(pk=drill_id)


def mark_instances(*, pattern: str, actor: Actor, now: datetime) -> tuple[DrillMark, bool]:
    """Mark instances for drills; return the mark, and True if it is new."""
    require_approver(actor)
    parsed = patterns.read_pattern(pattern)
    authority.require_in_limits(actor, patterns.resource_of(parsed))
    with transaction.atomic():
        head = publication.lock()
        row, new = DrillMark.objects.get_or_create(
            pattern=parsed, defaults={"created_at": now, "created_by": actor.label}
        )
        if new:
            _record_mark_change("drill.marked", parsed, head, actor, now)
        return row, new


def remove_mark(*, pattern: str, actor: Actor, now: datetime) -> None:
    require_approver(actor)
    authority.require_in_limits(actor, patterns.resource_of(pattern.strip()))
    with transaction.atomic():
        head = publication.lock()
        deleted, _ = DrillMark.objects.filter(pattern=pattern.strip().replace("\x00", "")).delete()
        if not deleted:
            raise NotFound(f"{pattern.strip()} is not a drill instance.")
        transitions.forget_mark(pattern.strip())
        _record_mark_change("drill.unmarked", pattern.strip(), head, actor, now)


def _record_mark_change(
    action: str, pattern: str, head: Publication, actor: Actor, now: datetime
) -> None:
    published = live_drills.find_drills_in_force().exists()
    after = {"version": publication.advance(head, now)} if published else None
    audit.record(actor=actor, action=action, target=f"drills:{pattern}", after=after, now=now)


def schedule_drill(
    *,
    scope: str,
    key: str,
    every: str,
    mode: str = live_drills.LIVE,
    reason: str,
    actor: Actor,
    now: datetime,
) -> DrillSchedule:
    """Schedule a repeated drill; `every` is its interval in whole days (`7d`).

    The first drill starts one interval from now. The switch's previous schedule is replaced.
    """
    actor.require("switches:write")
    check_drillable(scope, key, mode, reason)
    days = parse_days(every)
    with transaction.atomic():
        authority.require(actor, Action.EDIT, identify(scope, key))
        publication.lock()
        switch = register_and_lock(scope, key, now=now)
        row, _ = DrillSchedule.objects.update_or_create(
            switch=switch,
            defaults={
                "mode": mode,
                "every_days": days,
                "next_at": now + timedelta(days=days),
                "reason": reason.strip(),
                "created_at": now,
                "created_by": actor.label,
                "creator_id": actor.user_id,
            },
        )
        record_schedule_event("drill.scheduled", row, row.reason, actor, now)
        return row


def remove_schedule(*, scope: str, key: str, actor: Actor, now: datetime) -> None:
    actor.require("switches:write")
    switch_id = identify(scope, key)
    with transaction.atomic():
        authority.require(actor, Action.EDIT, switch_id)
        publication.lock()
        lock_switch(scope, key)
        row = DrillSchedule.objects.filter(switch_id=switch_id).first()
        if row is None:
            raise NotFound(f"{switch_id} has no drill schedule.")
        record_schedule_event("drill.unscheduled", row, row.reason, actor, now)
        row.delete()


def parse_days(every: str) -> int:
    """Return the days of an interval such as `7d`; raise :class:`InvalidInput`."""
    day = timedelta(days=1)
    try:
        found = durations.parse(every)
    except ValueError as error:
        raise InvalidInput({"every": [str(error)]}) from error
    if found % day or not day <= found <= MAX_ROUND_DAYS * day:
        raise InvalidInput({"every": [f"Must be whole days, 1d to {MAX_ROUND_DAYS}d."]})
    return found // day


def record_schedule_event(
    action: str, row: DrillSchedule, reason: str, actor: Actor, now: datetime
) -> AuditEntry:
    return audit.record(
        actor=actor,
        action=action,
        target=row.switch_id,
        reason=reason,
        after=schedule_state(row),
        now=now,
    )


def schedule_state(row: DrillSchedule) -> dict[str, Any]:
    """Return a schedule as the audit trail records it."""
    return {"mode": row.mode, "every_days": row.every_days, "next_at": timestamp(row.next_at)}


def require_approver(actor: Actor) -> None:
    """Raise :class:`Forbidden` unless the actor is an approver, an admin or the server's shell.

    Operators may run drills, but not choose the instances that drills block.
    """
    actor.require("switches:write")
    if actor.type == "system":
        return
    if actor.role is None or Power.APPROVE not in POWERS_OF[actor.role]:
        raise Forbidden(
            "Only approvers, admins and tokens they own can choose the drill instances; your role"
            f" is {actor.role}."
        )
