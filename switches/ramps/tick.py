"""Periodic work on ramps: evaluates the gates of all leased ramps, then executes transitions.

Each transition runs in its own transaction.
"""

import copy
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F

from controlplane.core.gates.questions import WAITING
from controlplane.core.jobs import claims, endings, failures
from controlplane.core.jobs.claims import LeasedJob, LeaseLost
from controlplane.core.jobs.effects import AlreadyDone
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.change_notices import notify_changed
from controlplane.notify.targets import routing
from switches.ramps import notifications

from . import gate_evaluation, locked_ramp, transitions
from .decision import Next, RampDecision
from .gate_evaluation import RampEvaluation

MAX_ADVANCE_TIME = timedelta(seconds=2)
"""Maximum time in which a tick advances ramps, because gate results become outdated."""
MAX_COMPENSATION_TIME = timedelta(seconds=8)
"""Maximum time in which a tick compensates ramps; shorter than a lease."""
RETRY_DELAY = timedelta(seconds=10)
MAX_ATTEMPTS = 5

log = structlog.get_logger(__name__)


def advance_ramps(turns: Sequence[LeasedJob], now: datetime, probe: Probe) -> int:
    """Execute the due transitions of the leased ramps and return how many were executed."""
    began = time.monotonic()

    def clock() -> datetime:
        return now + timedelta(seconds=time.monotonic() - began)

    claims.count_inherited_attempts(turns)
    evaluations = gate_evaluation.evaluate_ramps(turns, now)
    gate_evaluation.store_results(gate_evaluation.select_changed(evaluations, now), now)
    probe("ramp.looked")
    evaluated_at, moved = clock(), 0
    with routing.cached_routing():
        for evaluation in sorted(evaluations, key=_get_urgency):
            going_back = evaluation.decision.next == Next.COMPENSATE
            limit = MAX_COMPENSATION_TIME if going_back else MAX_ADVANCE_TIME
            if clock() > evaluated_at + limit:
                break
            moved += _apply(evaluation, clock, probe)
    return moved


def _get_urgency(evaluation: RampEvaluation) -> tuple[bool, Any]:
    at = evaluation.step.due_at or evaluation.step.started_at
    return evaluation.decision.next != Next.COMPENSATE, at


def _apply(evaluation: RampEvaluation, clock: Callable[[], datetime], probe: Probe) -> bool:
    decision, job = evaluation.decision, evaluation.turn.job
    if decision.next == Next.STAY:
        return False
    if decision.next == Next.HOLD and _is_held_already(evaluation):
        return False
    # Work on a copy: changes to the job are discarded if the transaction rolls back.
    turn = LeasedJob(copy.copy(job))
    try:
        with transaction.atomic():
            _execute(evaluation, turn, clock, probe)
        probe(f"{decision.next}.committed")
    except (LeaseLost, AlreadyDone):
        claims.count_stopped_write(job.pk)
        return False
    except Exception as error:
        if failures.is_database_away(error):
            raise
        log.exception("ramp.transition_failed", ramp=job.pk, transition=decision.next)
        return _handle_failure(evaluation, failures.describe_error(error), clock, probe)
    return True


def _execute(
    evaluation: RampEvaluation, turn: LeasedJob, clock: Callable[[], datetime], probe: Probe
) -> None:
    locked = locked_ramp.lock_for_worker(turn)
    now, decision = clock(), evaluation.decision
    probe(f"{decision.next}.locked")
    if decision.next == Next.ADVANCE:
        transitions.advance(locked, now, probe=probe)
    elif decision.next == Next.COMPENSATE:
        transitions.compensate(
            locked, decision.why, now, gate_results=evaluation.gates, probe=probe
        )
    else:
        transitions.hold(locked, decision.why, decision.blind_since, now, probe=probe)


def _is_held_already(evaluation: RampEvaluation) -> bool:
    job, decision = evaluation.turn.job, evaluation.decision
    all_requested = all(
        "approval" in gate["evidence"] for gate in evaluation.gates if gate["verdict"] == WAITING
    )
    return (
        job.state == Job.State.HOLDING
        and job.hold_reason == decision.why
        and evaluation.ramp.blind_since == decision.blind_since
        and all_requested
    )


def _handle_failure(
    evaluation: RampEvaluation, error: str, clock: Callable[[], datetime], probe: Probe
) -> bool:
    """Record a failed transition, and compensate the ramp after the last attempt.

    Return True if the ramp was compensated. An error while recording is only logged, so that the
    other ramps proceed.
    """
    going_back = evaluation.decision.next == Next.COMPENSATE
    try:
        if going_back:
            record_failed_compensation(evaluation.turn, evaluation.decision.why, error, clock())
            return False
        if not count_failure(evaluation.turn, evaluation.step, error):
            return False
    except LeaseLost:
        claims.count_stopped_write(evaluation.turn.job.pk)
        return False
    except Exception as another:
        if failures.is_database_away(another):
            raise
        log.exception("ramp.failure_not_recorded", ramp=evaluation.turn.job.pk)
        return False
    why = f"It failed {MAX_ATTEMPTS} times: {error}"
    evaluation.decision = RampDecision(Next.COMPENSATE, why)
    return _apply(evaluation, clock, probe)


@transaction.atomic
def count_failure(turn: LeasedJob, step: JobStep, error: str) -> bool:
    """Count a failed transition; return True if no attempt is left, or raise :class:`LeaseLost`."""
    JobStep.objects.filter(pk=step.pk).update(attempts=F("attempts") + 1, error=error)
    turn.change(error=error, attempts=turn.job.attempts + 1)
    notify_changed("ramps", str(turn.job.pk))
    return step.attempts + 1 >= MAX_ATTEMPTS


def record_failed_compensation(turn: LeasedJob, why: str, error: str, now: datetime) -> None:
    """Record that compensating a ramp failed with `error`, and escalate it to a person once.

    `why` is the reason of the compensation. Raise :class:`LeaseLost` if the lease was lost.
    """
    job, outcome = turn.job, f"It could not be engaged again: {error}"
    # Not in the transaction of the escalation, which may fail.
    turn.change(
        state=Job.State.FAILED,
        finished_at=job.finished_at or now,
        next_at=now + RETRY_DELAY,
        error=why,
        outcome=outcome,
        compensation_failed_at=now,
    )
    notify_changed("ramps", str(turn.job.pk))
    if endings.is_escalated(job, endings.NOT_COMPENSATED):
        return
    with transaction.atomic():
        notifications.notify_failed_compensation(job, f"{why} {outcome}", now)
        endings.escalate_failed_compensation(job, f"{why} {outcome}", now)
