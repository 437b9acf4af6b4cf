"""Job steps of a drill: list instances, engage, wait, release, wait, record.

A step may run twice, on two workers, so each publishing step first checks in the drill row whether
it was done already. A drill that can no longer pass still runs its remaining steps, which end the
blocking and record the result. After an error, the blocking ends and the drill is recorded as
failed.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor, label_of, system_actor
from controlplane.core.errors import Conflict
from controlplane.core.jobs import control, endings, kinds, stepwise
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.control import PlannedStep
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.stepwise import StepContinues, StepKind, StepPassed
from switches.drills import marked_instances, transitions
from switches.drills.patterns import Marks
from switches.episodes import live_drills
from switches.models import Drill, EmergencyOrder
from switches.models.drill import MARKED, WHY

APPLIED_WITHIN = timedelta(seconds=60)
POLL_INTERVAL = timedelta(milliseconds=500)
ORDERED_WITHIN = timedelta(minutes=15)
"""Time for a person to give the emergency order of an emergency drill."""
ORDER_POLL_INTERVAL = timedelta(seconds=1)
ACTOR = system_actor("drills")
NO_INSTANCES = (
    "No drill instance is reporting. Check that the drill instances run and report under these"
    " names."
)
TOO_LATE = (
    "The worker was not running when the drill ended, so its effect was not measured ({part})."
)
SKIPPED = StepPassed({"skipped": True})


@transaction.atomic
def cancel_drill(job: Job, reason: str, actor: Actor, now: datetime) -> None:
    """Cancel a drill: publish the switch's real state, and end the job as cancelled."""
    locked = transitions.lock_drill(job.pk)
    drill = locked.drill
    row = Job.objects.select_for_update().get(pk=job.pk)
    if not (row.is_live and drill.live):
        raise control.build_conflict(row, "be cancelled")
    before = row.state
    outcome = f"Cancelled by {actor.label}: {reason}"
    over = {"state": Job.State.CANCELLED, "finished_at": now, "next_at": None}
    control.take_over(row, now, **over, outcome=outcome)
    released = transitions.release(locked, now)
    drill.live, drill.measured = False, {WHY: outcome, **drill.measured}
    drill.save(update_fields=["live", "measured"])
    endings.close_escalation(row, now)
    if released:
        transitions.audit_release(locked, actor, now)
    endings.record_audit(row, "job.cancelled", now, reason, actor=actor, before=before)


def _list_instances(turn: LeasedJob, _step: JobStep, now: datetime, _probe: Probe) -> StepPassed:
    """Record the marked instances that report now; without any, the drill can't pass."""
    with transaction.atomic():
        drill = transitions.lock_drill_row(turn.job.pk)
        turn.heartbeat(now)
        found = marked_instances.list_reporting_instances(marked_instances.read_marks(), now)
        named = {"instances": len(found), "names": found[: marked_instances.MAX_NAMED]}
        transitions.record_measurement(drill, "look", named, why="" if found else NO_INSTANCES)
        return StepPassed(named)


def _engage(turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe) -> StepPassed:
    """Publish the switch as engaged for the marked instances, unless it was engaged for real."""
    with transaction.atomic():
        locked = transitions.lock_drill(turn.job.pk)
        turn.heartbeat(now)
        drill = locked.drill
        if drill.engaged_at is not None:
            return StepPassed()
        episode = locked.switch.episode
        if episode is not None and not drill.failure_reason:
            transitions.record_measurement(
                drill, "look", drill.measured.get("look", {}), why=describe_stopped(episode.state)
            )
        if drill.failure_reason:
            return SKIPPED
        transitions.engage(locked, now)
        probe("drill.engaged.written")
        version = drill.engaged_version
        transitions.record_audit("drill.engaged", locked.switch, drill, ACTOR, now, version=version)
    return StepPassed({"version": version})


def _release(turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe) -> StepPassed:
    """Publish the switch's real state, unless that was done already."""
    with transaction.atomic():
        locked = transitions.lock_drill(turn.job.pk)
        turn.heartbeat(now)
        if not transitions.release(locked, now):
            return StepPassed() if locked.drill.released_version else SKIPPED
        probe("drill.released.written")
        transitions.audit_release(locked, ACTOR, now)
    return StepPassed({"version": locked.drill.released_version})


def _wait_until_applied(
    part: str, turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    drill = Drill.objects.get(pk=turn.job.pk)
    version, since = drill.released_version, drill.released_at
    if part == "engage":
        if drill.released_at is not None:
            return SKIPPED
        version, since = drill.engaged_version, drill.engaged_at
    if version is None or since is None:
        return SKIPPED
    stopped_by = drill.measured.get(MARKED, [])
    found = marked_instances.measure_effect(Marks.from_patterns(stopped_by), version, since)
    probe(f"drill.{part}.looked")
    # `now` may precede the commit. abs() limits the wait even if the clock is set back.
    if abs(now - since) < APPLIED_WITHIN and (now < since or not found.by_everybody):
        return StepContinues(now + POLL_INTERVAL)
    with transaction.atomic():
        drill = transitions.lock_drill_row(turn.job.pk)
        if drill.measured.get(MARKED, []) != stopped_by:
            return StepContinues(now + POLL_INTERVAL)  # A mark was removed meanwhile.
        turn.heartbeat(now)
        late = part == "engage" and drill.ends_by is not None and now >= drill.ends_by
        why = TOO_LATE.format(part=part) if late else _describe_unproven(part, found)
        transitions.record_measurement(drill, part, vars(found), why=why)
    return StepPassed(vars(found))


def _await_order(
    turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    """Wait until an emergency order for the switch was reconciled, and measure how long it took."""
    since = turn.job.created_at
    orders = EmergencyOrder.objects.filter(
        action=EmergencyOrder.Action.ENGAGE, received_at__gte=since
    ).exclude(state=EmergencyOrder.State.RECEIVED)
    with transaction.atomic():
        drill = transitions.lock_drill_row(turn.job.pk)
        turn.heartbeat(now)
        order = orders.filter(switch=drill.switch_id).order_by("received_at", "pk").first()
        # abs() limits the wait even if the clock is set back.
        if order is None and abs(now - since) < ORDERED_WITHIN:
            return StepContinues(now + ORDER_POLL_INTERVAL)
        found = _measure_order(order) if order else {}
        transitions.record_measurement(drill, "order", found, why=_describe_unordered(order))
        probe("drill.order.written")
    return StepPassed(found)


def _measure_order(order: EmergencyOrder) -> dict[str, Any]:
    took = order.closed_at - order.at if order.closed_at else None
    return {
        "id": str(order.pk),
        "by": label_of(order.by_type, order.by_name),
        "plane": order.plane,
        "milliseconds": None if took is None else round(took.total_seconds() * 1000),
    }


def _describe_unordered(order: EmergencyOrder | None) -> str:
    if order is None:
        return f"No emergency order for it arrived within {ORDERED_WITHIN.seconds // 60} minutes."
    if order.state == EmergencyOrder.State.REFUSED:
        return f"The emergency order was refused: {order.refusal}"
    if order.state == EmergencyOrder.State.WITHDRAWN:
        return "The emergency order was withdrawn before it became an engagement."
    return ""


def _record(turn: LeasedJob, _step: JobStep, now: datetime, probe: Probe) -> StepPassed:
    with transaction.atomic():
        locked = transitions.lock_drill(turn.job.pk)
        turn.change(outcome=transitions.describe_outcome(locked.drill), heartbeat_at=now)
        if locked.drill.live:
            passed = not locked.drill.failure_reason
            transitions.end_drill(locked, turn.job, passed=passed, actor=ACTOR, now=now)
            probe("drill.ended.written")
    return StepPassed()


def _compensate_engage(turn: LeasedJob, step: JobStep, now: datetime) -> None:
    _release(turn, step, now, kinds.no_probe)


def _end_as_failed(turn: LeasedJob, _step: JobStep, now: datetime) -> None:
    """End the drill as failed, with the job's error as reason."""
    with transaction.atomic():
        locked = transitions.lock_drill(turn.job.pk)
        drill = locked.drill
        if not drill.live:
            return
        drill.measured = {WHY: f"The drill failed: {turn.job.error}", **drill.measured}
        drill.save(update_fields=["measured"])
        turn.change(outcome=transitions.describe_outcome(drill), heartbeat_at=now)
        transitions.end_drill(locked, turn.job, passed=False, actor=ACTOR, now=now)


LOOK = StepKind("look", _list_instances, compensate=_end_as_failed)
LIVE_STEPS = (
    LOOK,
    StepKind("engage", _engage, compensate=_compensate_engage),
    StepKind("engaged_applied", partial(_wait_until_applied, "engage")),
    StepKind("release", _release),
    StepKind("released_applied", partial(_wait_until_applied, "release")),
    StepKind("record", _record),
)
DRY_STEPS = (LOOK, StepKind("record", _record))
EMERGENCY_STEPS = (
    StepKind("order", _await_order, compensate=_end_as_failed),
    StepKind("record", _record),
)
STEPS = {
    live_drills.LIVE: LIVE_STEPS,
    live_drills.DRY: DRY_STEPS,
    live_drills.EMERGENCY: EMERGENCY_STEPS,
}
_WORKERS = {mode: stepwise.build_worker(steps) for mode, steps in STEPS.items()}


def plan_steps(mode: str) -> list[PlannedStep]:
    return [PlannedStep(step.name) for step in STEPS[mode]]


def advance_drills(turns: Sequence[LeasedJob], now: datetime, probe: Probe) -> int:
    drills = Drill.objects.filter(pk__in=[turn.job.pk for turn in turns])
    modes = dict(drills.values_list("pk", "mode"))
    return sum(
        work([turn for turn in turns if modes[turn.job.pk] == mode], now, probe)
        for mode, work in _WORKERS.items()
    )


def describe_stopped(state: str) -> str:
    """Return the reason why a switch in this `state`, engaged or ramping, can't be drilled."""
    return f"The switch is {state}. Only a released switch can be drilled."


def _describe_unproven(part: str, found: marked_instances.MarkedEffect) -> str:
    if found.by_everybody:
        return ""
    if not found.instances:
        return f"No drill instance is left ({part})."
    behind = found.instances - found.applied
    named = ", ".join(found.stragglers[:5]) + ("…" if behind > 5 else "")
    return (
        f"{behind:,} of {found.instances:,} instances had not confirmed it after "
        f"{APPLIED_WITHIN.seconds} seconds ({part}): {named}."
    )


def _refuse_pause(_job: Job, _reason: str, _actor: Actor, _now: datetime) -> None:
    raise Conflict("A drill takes a minute or two; it can't be paused. Cancel it instead.")


kinds.register(
    kinds.JobKind(
        name=live_drills.KIND,
        title="Drill",
        tick="jobs.turn",
        work=advance_drills,
        path=lambda job: f"/drills/#drill-{job.pk}",
        interventions={"cancel": cancel_drill, "pause": _refuse_pause},
        tells_failures=True,
    )
)
