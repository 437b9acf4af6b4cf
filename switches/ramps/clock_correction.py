"""Correction of ramp times that lie in the future because the system clock was set back."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction

from controlplane.core.gates import services as gates
from controlplane.core.jobs import claims
from controlplane.core.jobs.claims import LeasedJob, LeaseLost
from controlplane.core.jobs.models import Job, JobStep
from switches.models import Ramp

from . import transitions
from .questions import build_questions

AHEAD = timedelta(seconds=60)
"""A time further in the future than this was recorded before the clock was set back."""
MAX_AT_ONCE = 100
"""Maximum ramps corrected per evaluation; later evaluations correct the rest."""

log = structlog.get_logger(__name__)


def correct_times(found: Sequence[tuple[LeasedJob, Ramp, JobStep]], now: datetime) -> None:
    """Restart steps that began in the future, and set other future times of ramps to `now`.

    After the system clock was set back, such a step's dwell would not end and its gates would not
    count. The function updates the given objects together with their rows.
    """
    ahead = [item for item in found if _is_ahead(*item, now)]
    for turn, ramp, step in ahead[:MAX_AT_ONCE]:
        try:
            _correct_times(turn, ramp, step, now)
        except LeaseLost:
            claims.count_stopped_write(turn.job.pk)
        except (OperationalError, InterfaceError) as error:
            if not connection.is_usable():
                raise
            log.warning("ramp.correction_postponed", ramp=ramp.pk, error=str(error).strip())


def _is_ahead(turn: LeasedJob, ramp: Ramp, step: JobStep, now: datetime) -> bool:
    # The start of the dwell, if the step was never paused.
    dwell_start = None if step.due_at is None else step.due_at - _dwell(step)
    moments = (step.started_at, turn.job.paused_at, ramp.blind_since, dwell_start)
    return any(moment is not None and moment > now + AHEAD for moment in moments)


def _dwell(step: JobStep) -> timedelta:
    return timedelta(seconds=step.data["dwell_seconds"])


@transaction.atomic
def _correct_times(turn: LeasedJob, ramp: Ramp, step: JobStep, now: datetime) -> None:
    job, latest = turn.job, now + AHEAD
    begins_anew = step.started_at is not None and step.started_at > latest
    changes: dict[str, Any] = {"paused_at": job.paused_at}
    if job.paused_at is not None and job.paused_at > latest:
        changes["paused_at"] = now
        if step.due_at is not None:  # Keep the remaining dwell.
            step.due_at -= job.paused_at - now
    if begins_anew and job.state == Job.State.HOLDING:
        changes |= {"state": Job.State.RUNNING, "hold_reason": ""}
    turn.change(**changes)
    if ramp.blind_since is not None and (begins_anew or ramp.blind_since > latest):
        ramp.blind_since = None if begins_anew else now
        ramp.save(update_fields=["blind_since"])
    if begins_anew:
        step.started_at = now
        step.data = {
            name: value for name, value in step.data.items() if name != transitions.HELD_FOR
        }
        questions = build_questions(ramp, step.index, ramp.plan[step.index]["gates"], now)
        gates.withdraw_questions(questions)
        gates.store_questions(questions)
    if begins_anew or (step.due_at is not None and step.due_at > now + _dwell(step)):
        step.due_at = now + _dwell(step)
    step.save(update_fields=["started_at", "due_at", "data"])
    log.warning("ramp.times_corrected", ramp=ramp.pk, step=step.index, begins_anew=begins_anew)
