"""One look at every ramp that is under way: what its gates say, and the moves that follow.

Looking is done for all of them together, in a handful of queries; each move is a transaction.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F

from controlplane.core.canonical import timestamp
from controlplane.core.gates import services as gates
from controlplane.core.gates.questions import NO_DATA, WAITING, Answer, Question
from controlplane.core.jobs import claims
from controlplane.core.jobs.claims import LeaseLost, Turn
from controlplane.core.jobs.kinds import Probe
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.targets import routing
from switches.models import Ramp
from switches.ramps import asking, failing, live, moves, scene, words
from switches.ramps.decide import Decision, Next, Seen, Standing, decide

MOVE_FOR = timedelta(seconds=1)
"""After so long no further ramp goes on in this look: the next one sees to it, and to gates that
fail meanwhile. However long the look took, something moves."""
COMPENSATE_FOR = timedelta(seconds=8)
"""Ramps that have to go back to nothing do not wait for that; but longer than a lease is too long.
"""
KEEP_EVERY = timedelta(seconds=5)

_KEEP = """
    UPDATE core_jobstep SET data = new.data
    FROM unnest(%s::bigint[], %s::jsonb[], %s::bigint[]) AS new(id, data, fence),
         core_job AS job
    WHERE core_jobstep.id = new.id AND job.id = core_jobstep.job_id AND job.fence = new.fence
"""

log = structlog.get_logger(__name__)


@dataclass
class Look:
    """A ramp as it was found: its step, its gates with what they say now, and what follows."""

    turn: Turn
    ramp: Ramp
    step: JobStep
    gates: list[dict[str, Any]]
    decision: Decision


def work(turns: Sequence[Turn], now: datetime, probe: Probe) -> int:
    """Look at every claimed ramp and move those that can go on or have to go back."""
    began = time.monotonic()

    def clock() -> datetime:
        return now + timedelta(seconds=time.monotonic() - began)

    _count_inherited(turns)
    looks = _look(turns, now)
    _keep(looks, now)
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


def _look(turns: Sequence[Turn], now: datetime) -> list[Look]:
    jobs = [turn.job.pk for turn in turns]
    ramps = Ramp.objects.only("switch_id", "blind_since").in_bulk(jobs)
    steps = {
        step.job_id: step
        for step in JobStep.objects.filter(
            job_id__in=jobs, index=F("job__step_index"), state=JobStep.State.RUNNING
        )
    }
    # A ramp that ended since it was claimed has no step that runs.
    there = [turn for turn in turns if turn.job.pk in steps and turn.job.pk in ramps]
    said = _said(there, ramps, steps, now)
    return [_judged(turn, ramps[turn.job.pk], steps[turn.job.pk], said, now) for turn in there]


def _judged(
    turn: Turn, ramp: Ramp, step: JobStep, said: Mapping[str, Answer], now: datetime
) -> Look:
    """One that can't be judged goes back, and does not keep the others from going on."""
    try:
        return _looked(turn, ramp, step, said, now)
    except Exception as error:
        log.exception("ramp.not_judged", ramp=ramp.pk)
        why = f"It can't be judged: {type(error).__name__}: {error}"
        return Look(turn, ramp, step, [], Decision(Next.COMPENSATE, why))


def _said(
    turns: Sequence[Turn], ramps: Mapping[int, Ramp], steps: Mapping[int, JobStep], now: datetime
) -> dict[str, Answer]:
    """What every gate of every step says now, by the key of its question."""
    questions, people = [], {}
    for turn in turns:
        ramp, step = ramps[turn.job.pk], steps[turn.job.pk]
        for number, spec in enumerate(step.data["gates"]):
            key = live.question_key(ramp, step.index, number)
            if spec["type"] == "manual":
                people[key] = live.approval_target(ramp, step.index)
            else:
                questions.append(Question(key, spec, step.started_at or now))
    found = _answers(questions, now) if questions else []
    said = {question.key: answer for question, answer in zip(questions, found, strict=True)}
    asked = asking.answers(people.values(), now) if people else {}
    return said | {key: asked.get(target, asking.NOT_YET) for key, target in people.items()}


def _answers(questions: Sequence[Question], now: datetime) -> list[Answer]:
    """Gates that can't be read say nothing, so the ramps that need them hold."""
    try:
        return gates.answers(questions, now)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("ramp.gates_unread")
        why = f"the gates can't be read: {type(error).__name__}: {error}"
        return [Answer(NO_DATA, {"why": why}) for _ in questions]


def _looked(
    turn: Turn, ramp: Ramp, step: JobStep, said: Mapping[str, Answer], now: datetime
) -> Look:
    job = turn.job
    answers = [
        said[live.question_key(ramp, step.index, number)]
        for number in range(len(step.data["gates"]))
    ]
    found = [
        {**spec, "verdict": answer.verdict, "evidence": dict(answer.evidence)}
        for spec, answer in zip(step.data["gates"], answers, strict=True)
    ]
    if job.state == Job.State.FAILED:
        return Look(turn, ramp, step, found, Decision(Next.COMPENSATE, job.error))
    standing = Standing(
        state=job.state,
        dwell_until=step.due_at or now,
        max_hold=timedelta(seconds=step.data["max_hold_seconds"]),
        blind_since=ramp.blind_since,
    )
    seen = [Seen(words.gate(gate), gate["verdict"], _why(gate)) for gate in found]
    return Look(turn, ramp, step, found, decide(standing, seen, now))


def _why(gate: Mapping[str, Any]) -> str:
    """That a person is waited for is told once, whatever they are told meanwhile."""
    return "" if gate["verdict"] == WAITING else words.why(gate["evidence"])


def _keep(looks: Sequence[Look], now: datetime) -> None:
    """Keep the verdicts that changed, and evidence that did from time to time, in one statement."""
    changed = [look for look in looks if _is_news(look, now)]
    if not changed:
        return
    at = timestamp(now)
    for look in changed:
        look.gates = [{**gate, "checked_at": at} for gate in look.gates]
        look.step.data = {**look.step.data, "gates": look.gates}
    with connection.cursor() as cursor:
        cursor.execute(
            _KEEP,
            [
                [look.step.pk for look in changed],
                [orjson.dumps(look.step.data).decode() for look in changed],
                [look.turn.job.fence for look in changed],
            ],
        )


def _is_news(look: Look, now: datetime) -> bool:
    for kept, found in zip(look.step.data["gates"] if look.gates else (), look.gates, strict=True):
        if kept.get("verdict") != found["verdict"]:
            return True
        due = kept.get("checked_at", "") <= timestamp(now - KEEP_EVERY)
        if due and kept.get("evidence") != found["evidence"]:
            return True
    return False


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
    except LeaseLost:
        claims.stopped(job.pk)
        return False
    except (OperationalError, InterfaceError) as error:
        if not connection.is_usable():
            raise
        # Somebody held a lock for too long, say. The leases of all must not be kept for that.
        log.warning("ramp.postponed", ramp=job.pk, move=decision.next, error=str(error).strip())
        return False
    except Exception as error:
        log.exception("ramp.move_failed", ramp=job.pk, move=decision.next)
        return _not_moved(look, f"{type(error).__name__}: {error}", clock, probe)
    return True


def _carry_out(look: Look, turn: Turn, clock: Callable[[], datetime], probe: Probe) -> None:
    set_ = scene.of_turn(turn)
    now, decision = clock(), look.decision
    probe(f"{decision.next}.locked")
    if decision.next == Next.ADVANCE:
        moves.advance(set_, now, probe=probe)
    elif decision.next == Next.COMPENSATE:
        moves.compensate(set_, decision.why, now, seen=look.gates, probe=probe)
    else:
        moves.hold(set_, decision.why, decision.blind_since, now, probe=probe)


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
            failing.no_way_back(look.turn, look.decision.why, error, clock())
            return False
        if not failing.tried_enough(look.turn, look.step, error):
            return False
    except LeaseLost:
        claims.stopped(look.turn.job.pk)
        return False
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("ramp.failure_not_kept", ramp=look.turn.job.pk)
        return False
    why = f"It could not go on, {failing.MOST_ATTEMPTS} times: {error}"
    look.decision = Decision(Next.COMPENSATE, why)
    return _move(look, clock, probe)


def _count_inherited(turns: Sequence[Turn]) -> None:
    """A worker that died at a step has tried it: this is another attempt."""
    died = [turn for turn in turns if turn.inherited]
    if not died:
        return
    jobs = [turn.job.pk for turn in died]
    Job.objects.filter(pk__in=jobs).update(attempts=F("attempts") + 1)
    running = JobStep.objects.filter(job_id__in=jobs, index=F("job__step_index"))
    running.filter(state=JobStep.State.RUNNING).update(attempts=F("attempts") + 1)
    for turn in died:
        turn.job.attempts += 1
