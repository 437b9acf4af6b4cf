"""Actions of people on ramps: advance, pause, resume and abort."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core import authority, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.gates import kinds
from controlplane.core.gates.questions import FAIL, PASS, WAITING
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.kinds import Intervention
from controlplane.core.jobs.models import Job, JobStep
from switches.models import Ramp
from switches.rules import guard

from . import descriptions, gate_evaluation, live_ramps, locked_ramp, transitions
from . import plan as plans
from .gate_evaluation import RampEvaluation
from .locked_ramp import LockedRamp

REQUIRED_ACTIONS: Mapping[str, Action] = {
    "advance": Action.RELEASE_AT_ONCE,
    "pause": Action.ENGAGE,
    "resume": Action.RELEASE,
    "abort": Action.ENGAGE,
}
"""The action on the switch that a person must be allowed, by ramp action."""


def find_step(ramp_id: int) -> int | None:
    """Return the index of a ramp's current step; None for an unknown ramp."""
    return Job.objects.filter(pk=ramp_id).values_list("step_index", flat=True).first()


def advance(
    *, ramp_id: int, reason: str, actor: Actor, now: datetime, step_index: int | None = None
) -> Ramp:
    """Advance a ramp to its next step now, even if its dwell or its gates are not finished.

    Requires what a release at once requires. Requires a person other than the ramp's requester if a
    manual gate is waiting, or if more than 25 % would flow early on a switch whose release needs
    two people. Raise :class:`Conflict` if a gate fails or a safety rule forbids the step.

    `step_index` is the step to leave, by default the current one. A caller that retries its
    transaction must pass it, so that the retry doesn't leave a later step. If two people advance at
    once, the second gets a :class:`Conflict` that names the first.
    """
    if step_index is None:
        step_index = find_step(ramp_id)
    return _advance(ramp_id, step_index, reason, actor, now)


@retry_if_ended
@transaction.atomic
def _advance(
    ramp_id: int, step_index: int | None, reason: str, actor: Actor, now: datetime
) -> Ramp:
    _check_request(actor, reason)
    running = {Job.State.RUNNING, Job.State.HOLDING}
    found = _lock_live(ramp_id, "advance", running, actor, now)
    if step_index != found.index:
        raise _explain_advanced(found, now)
    # Stored results are from a worker's last evaluation; a gate may have failed since.
    (evaluation,) = gate_evaluation.evaluate_ramps([LeasedJob(found.job)], now)
    _require_no_failure(evaluation)
    _check_skipping(found, evaluation, actor, now)
    gate_evaluation.store_results([evaluation], now)
    if not transitions.advance(found, now, actor=actor, reason=reason.strip()):
        raise Conflict(found.job.hold_reason)
    return found.ramp


@retry_if_ended
@transaction.atomic
def pause(*, ramp_id: int, reason: str, actor: Actor, now: datetime) -> Ramp:
    """Pause a ramp at its current share; a failing gate still engages the switch again."""
    _check_request(actor, reason)
    running = {Job.State.RUNNING, Job.State.HOLDING}
    found = _lock_live(ramp_id, "pause", running, actor, now)
    found.write(state=Job.State.PAUSED, paused_at=now, hold_reason=reason.strip())
    transitions.record_transition(found, "ramp.paused", reason.strip(), actor, now)
    return found.ramp


@retry_if_ended
@transaction.atomic
def resume(*, ramp_id: int, reason: str, actor: Actor, now: datetime) -> Ramp:
    """Resume a paused ramp; its dwell and its wait for data continue where they stopped."""
    _check_request(actor, reason)
    found = _lock_live(ramp_id, "resume", {Job.State.PAUSED}, actor, now)
    paused_at = found.job.paused_at or now
    lasted = max(now - paused_at, timedelta())
    step = JobStep.objects.get(job=found.job, index=found.index)
    if step.due_at is not None and step.due_at > paused_at:
        found.step(found.index, due_at=now + (step.due_at - paused_at))
    if found.ramp.blind_since is not None:
        found.ramp.blind_since += lasted
        found.ramp.save(update_fields=["blind_since"])
    found.write(state=Job.State.RUNNING, paused_at=None, hold_reason="")
    transitions.record_transition(found, "ramp.resumed", reason.strip(), actor, now)
    return found.ramp


@retry_if_ended
@transaction.atomic
def abort(*, ramp_id: int, reason: str, actor: Actor, now: datetime) -> Ramp:
    """Abort a ramp and engage its switch again; withdraw a ramp that waits for approval."""
    _check_request(actor, reason)
    every = {*live_ramps.STATES} - {Job.State.COMPLETED, Job.State.CANCELLED}
    found = _lock_live(ramp_id, "abort", every, actor, now)
    outcome = f"Aborted by {actor.label}: {reason.strip()}"
    if found.job.state == Job.State.PENDING:
        live_ramps.supersede(found.switch, outcome, actor, now)
        target, kind = found.switch.pk, Approval.Kind.RELEASE
        approvals.void_requests(kind=kind, target=target, actor=actor, now=now, why=outcome)
        transitions.record_transition(found, "ramp.aborted", outcome, actor, now)
    else:
        transitions.compensate(found, outcome, now, actor=actor, action="ramp.aborted")
    found.ramp.refresh_from_db()
    return found.ramp


def _check_request(actor: Actor, reason: str) -> None:
    actor.require("ramps:write")
    if problems := reasons.find_text_problems(reason):
        raise InvalidInput({"reason": problems})


def _lock_live(
    ramp_id: int, verb: str, states: set[Any], actor: Actor, now: datetime
) -> LockedRamp:
    if REQUIRED_ACTIONS[verb] != Action.ENGAGE:
        authority.lock_teams()
    found = locked_ramp.lock_for_person(ramp_id, now)
    switch_id = Ramp.objects.values_list("switch_id", flat=True).get(pk=ramp_id)
    authority.require(actor, REQUIRED_ACTIONS[verb], switch_id)
    if found is None or found.job.state not in states:
        job = Job.objects.get(pk=ramp_id)
        state = live_ramps.STATES[job.state]
        done = f"{verb.removesuffix('e')}ed"
        raise Conflict(f"This ramp is {state}; it can't be {done} now. {job.outcome}", state=state)
    return found


def _explain_advanced(found: LockedRamp, now: datetime) -> Conflict:
    # Exclude earlier ramps of the switch.
    moves_on_record = AuditEntry.objects.filter(
        target=found.switch.pk, action="ramp.advanced", at__gte=found.job.started_at or now
    )
    last = moves_on_record.order_by("-id").first()
    share = descriptions.format_percent(found.percent_of(found.index))
    at = f"step {found.index + 1} of {len(found.ramp.plan)}, {share}"
    if found.index == 0 or last is None:
        return Conflict(f"The ramp is at {at}. Nothing changed.", step_index=found.index)
    return Conflict(
        f"{last.actor_type}:{last.actor_name} advanced it to {at}, at {last.at:%H:%M:%S} UTC. "
        "Nothing changed. Advance again to skip the next step, too.",
        step_index=found.index,
        advanced_by=f"{last.actor_type}:{last.actor_name}",
    )


def _require_no_failure(evaluation: RampEvaluation) -> None:
    if len(evaluation.gates) != len(evaluation.step.data["gates"]):
        raise Conflict(f"{evaluation.decision.why} The switch is about to be engaged again.")
    for gate in (*evaluation.gates, *evaluation.step.data["gates"]):
        if gate.get("verdict") == FAIL:
            raise Conflict(
                f"A gate failed: {kinds.describe_finding(gate)}. The switch is about to be"
                " engaged again.",
                gate=gate,
            )


def _check_skipping(
    found: LockedRamp, evaluation: RampEvaluation, actor: Actor, now: datetime
) -> None:
    """Raise :class:`Forbidden` if leaving this step early needs a second person."""
    if any(gate["verdict"] == WAITING for gate in evaluation.gates):
        _require_second_person(found.ramp, actor, "A manual gate requires a signed-in person")
    is_early = evaluation.step.due_at is not None and evaluation.step.due_at > now
    all_pass = all(gate["verdict"] == PASS for gate in evaluation.gates)
    if all_pass and not is_early and not evaluation.is_held:
        return
    # Skipping a dwell can make any plan hasty (:func:`plans.is_hasty`).
    percent = plans.EVERYTHING if found.is_last else found.percent_of(found.index + 1)
    if percent > plans.MAX_EARLY_PERCENT and guard.needs_second_person(found.switch, at_once=True):
        share = "all" if percent >= plans.EVERYTHING else descriptions.format_percent(percent)
        what = f"Allowing {share} before the dwell time ends and the gates pass"
        _require_second_person(found.ramp, actor, f"{what} requires a second, signed-in person")


def _require_second_person(ramp: Ramp, actor: Actor, needed: str) -> None:
    if actor.type != "system" and not actor.is_person:
        raise Forbidden(f"{needed}; tokens can't.")
    if actor.user_id is not None and actor.user_id == ramp.requested_by_id:
        raise Forbidden(f"{needed}. You requested this ramp, so someone else must continue it.")
    # Permission to advance, for an hour, doesn't make an approver.
    authority.require(actor, Action.APPROVE, ramp.switch_id)


def _as_intervention(service: Any) -> Intervention:
    def intervene(job: Job, reason: str, actor: Actor, now: datetime) -> None:
        service(ramp_id=job.pk, reason=reason, actor=actor, now=now)

    return intervene


INTERVENTIONS: Mapping[str, Intervention] = {
    "pause": _as_intervention(pause),
    "resume": _as_intervention(resume),
    "cancel": _as_intervention(abort),
}
"""Ramp actions by the name of the job intervention."""
