"""A turn at every ramp that is under way: a look at what its gates say, and the moves that follow.

Looking is done for all of them together; each move is a transaction.
"""

import copy
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction

from controlplane.core.gates.questions import WAITING
from controlplane.core.jobs import claims, failures
from controlplane.core.jobs.claims import LeaseLost, Turn
from controlplane.core.jobs.effects import AlreadyDone
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job
from controlplane.core.targets import routing

from . import (
    failed_transitions,
    gate_evaluation,
    locked_ramp,
    transitions,
)
from .decision import Decision, Next
from .gate_evaluation import Look

MOVE_FOR = timedelta(seconds=2)
"""After so long no further ramp goes on in this look: the next one sees to it, and to gates that
fail meanwhile. However long the look took, something moves."""
COMPENSATE_FOR = timedelta(seconds=8)
"""Ramps that have to go back to nothing do not wait for that; but longer than a lease is too long.
"""

_COUNT = """
    WITH ours AS (
        UPDATE core_job SET attempts = attempts + 1
        FROM unnest(%s::bigint[], %s::bigint[]) AS held(id, fence)
        WHERE core_job.id = held.id AND core_job.fence = held.fence
        RETURNING core_job.id, core_job.step_index
    )
    UPDATE core_jobstep SET attempts = attempts + 1 FROM ours
    WHERE job_id = ours.id AND index = ours.step_index AND state = 'running'
"""

log = structlog.get_logger(__name__)


def work(turns: Sequence[Turn], now: datetime, probe: Probe) -> int:
    """Look at every claimed ramp and move those that can go on or have to go back."""
    began = time.monotonic()

    def clock() -> datetime:
        return now + timedelta(seconds=time.monotonic() - began)

    _count_inherited(turns)
    looks = gate_evaluation.at(turns, now)
    gate_evaluation.keep(gate_evaluation.news(looks, now), now)
    probe("ramp.looked")
    looked_at, moved = clock(), 0
    with routing.reading_once():
        for look in sorted(looks, key=_urgency):
            going_back = look.decision.next == Next.COMPENSATE
            limit = COMPENSATE_FOR if going_back else MOVE_FOR
            if clock() > looked_at + limit:
                break
            moved += _move(look, clock, probe)
    return moved


def _urgency(look: Look) -> tuple[int, datetime]:
    """Those that have to go back first, then those whose dwell was over first."""
    at = look.step.due_at or look.step.started_at
    assert at is not None  # noqa: S101 - a step that runs has begun
    return (0 if look.decision.next == Next.COMPENSATE else 1, at)


def _move(look: Look, clock: Callable[[], datetime], probe: Probe) -> bool:
    decision, job = look.decision, look.turn.job
    if decision.next == Next.STAY:
        return False
    if decision.next == Next.HOLD and _is_held_so(look):
        return False
    # What a move writes into the job is worth nothing if its transaction ends otherwise.
    turn = Turn(copy.copy(job))
    try:
        with transaction.atomic():
            _carry_out(look, turn, clock, probe)
        probe(f"{decision.next}.committed")
    except (LeaseLost, AlreadyDone):
        claims.stopped(job.pk)
        return False
    except Exception as error:
        if failures.is_away(error):
            raise
        log.exception("ramp.move_failed", ramp=job.pk, move=decision.next)
        return _not_moved(look, failures.said(error), clock, probe)
    return True


def _carry_out(look: Look, turn: Turn, clock: Callable[[], datetime], probe: Probe) -> None:
    set_ = locked_ramp.of_turn(turn)
    now, decision = clock(), look.decision
    probe(f"{decision.next}.locked")
    if decision.next == Next.ADVANCE:
        transitions.advance(set_, now, probe=probe)
    elif decision.next == Next.COMPENSATE:
        transitions.compensate(set_, decision.why, now, seen=look.gates, probe=probe)
    else:
        transitions.hold(set_, decision.why, decision.blind_since, now, probe=probe)


def _is_held_so(look: Look) -> bool:
    """Whether it is held for these very reasons already, and whoever has to be asked was."""
    job, decision = look.turn.job, look.decision
    asked = all("approval" in gate["evidence"] for gate in look.gates if gate["verdict"] == WAITING)
    return (
        job.state == Job.State.HOLDING
        and job.hold_reason == decision.why
        and look.ramp.blind_since == decision.blind_since
        and asked
    )


def _not_moved(look: Look, error: str, clock: Callable[[], datetime], probe: Probe) -> bool:
    """Keep that a move failed. Where even that can't be kept, the others go on all the same."""
    going_back = look.decision.next == Next.COMPENSATE
    try:
        if going_back:
            failed_transitions.no_way_back(look.turn, look.decision.why, error, clock())
            return False
        if not failed_transitions.tried_enough(look.turn, look.step, error):
            return False
    except LeaseLost:
        claims.stopped(look.turn.job.pk)
        return False
    except Exception as another:
        if failures.is_away(another):
            raise
        log.exception("ramp.failure_not_kept", ramp=look.turn.job.pk)
        return False
    why = f"It could not go on, {failed_transitions.MAX_ATTEMPTS} times: {error}"
    look.decision = Decision(Next.COMPENSATE, why)
    return _move(look, clock, probe)


def _count_inherited(turns: Sequence[Turn]) -> None:
    """A worker that died at a step has tried it: this is another attempt, if we hold it still."""
    died = [turn.job for turn in turns if turn.inherited]
    if not died:
        return
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [[job.pk for job in died], [job.fence for job in died]])
    for job in died:
        job.attempts += 1
