"""How ramps stand: what the gates of their present steps say now, and what follows from it.

Done for any number of them together, in a handful of queries.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
import structlog
from django.db import InterfaceError, OperationalError, connection
from django.db.models import F

from controlplane.core.canonical import timestamp
from controlplane.core.gates import holds, kinds
from controlplane.core.gates import services as gates
from controlplane.core.gates.models import Hold
from controlplane.core.gates.questions import NO_DATA, WAITING, Answer, Question
from controlplane.core.jobs.claims import Turn
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.notes import changed
from switches.models import Ramp

from . import (
    clock_correction,
    descriptions,
    transitions,
)
from .decision import Decision, Next, Seen, Standing, decide
from .questions import approval_target, build_questions

KEEP_EVERY = timedelta(seconds=5)
MAX_HOLDS = 3
"""Named as the reason why a ramp holds."""

_KEEP = """
    UPDATE core_jobstep SET data = new.data
    FROM unnest(%s::bigint[], %s::jsonb[], %s::bigint[]) AS new(id, data, fence),
         core_job AS job
    WHERE core_jobstep.id = new.id AND job.id = core_jobstep.job_id AND job.fence = new.fence
"""

log = structlog.get_logger(__name__)


@dataclass
class Look:
    """A ramp as it was found: its step, its gates with what they say now, and what follows.

    `step.data` has what they said when that was kept last. One that can't be judged has no gates.
    `is_held`: something holds it, whatever its gates say.
    """

    turn: Turn
    ramp: Ramp
    step: JobStep
    gates: list[dict[str, Any]]
    decision: Decision
    is_held: bool = False


def at(turns: Sequence[Turn], now: datetime) -> list[Look]:
    """Look at these, held by a lease or by a lock; those that have ended meanwhile are left out."""
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
    clock_correction.set_right(
        [(turn, ramps[turn.job.pk], steps[turn.job.pk]) for turn in there], now
    )
    said = _said(there, ramps, steps, now)
    held = _held([turn.job.pk for turn in there], now)
    return [
        _judged(turn, ramps[turn.job.pk], steps[turn.job.pk], said, held, now) for turn in there
    ]


def news(looks: Sequence[Look], now: datetime) -> list[Look]:
    """Those whose verdicts changed, or, from time to time, the evidence."""
    return [look for look in looks if _is_news(look, now)]


def keep(looks: Sequence[Look], now: datetime) -> None:
    """Keep what the gates of these say, in one statement, as far as they are held still."""
    if not looks:
        return
    checked_at = timestamp(now)
    for look in looks:
        look.gates = [{**gate, "checked_at": checked_at} for gate in look.gates]
        look.step.data = {**look.step.data, "gates": look.gates}
    with connection.cursor() as cursor:
        cursor.execute(
            _KEEP,
            [
                [look.step.pk for look in looks],
                [orjson.dumps(look.step.data).decode() for look in looks],
                [look.turn.job.fence for look in looks],
            ],
        )
    changed("ramps", *(str(look.ramp.pk) for look in looks))


def _judged(
    turn: Turn,
    ramp: Ramp,
    step: JobStep,
    said: Mapping[str, Sequence[Answer]],
    held: Mapping[str, Sequence[Hold]],
    now: datetime,
) -> Look:
    """One that can't be judged goes back, and does not keep the others from going on."""
    try:
        return _looked(turn, ramp, step, said, held.get(ramp.switch_id, ()), now)
    except Exception as error:
        log.exception("ramp.not_judged", ramp=ramp.pk)
        why = f"It can't be judged: {type(error).__name__}: {error}"
        return Look(turn, ramp, step, [], Decision(Next.COMPENSATE, why))


def _said(
    turns: Sequence[Turn], ramps: Mapping[int, Ramp], steps: Mapping[int, JobStep], now: datetime
) -> dict[str, list[Answer]]:
    """Return the answers of the gates of every step now, by the step's approval target."""
    questions = []
    for turn in turns:
        ramp, step = ramps[turn.job.pk], steps[turn.job.pk]
        since = step.started_at or now
        questions += build_questions(ramp, step.index, step.data["gates"], since)
    answers = _answers(questions, now) if questions else []
    found: dict[str, list[Answer]] = {}
    for question, answer in zip(questions, answers, strict=True):
        found.setdefault(question.step, []).append(answer)
    return found


def _answers(questions: Sequence[Question], now: datetime) -> list[Answer]:
    """Gates that can't be read say nothing, so the ramps that need them hold."""
    try:
        return gates.evaluate(questions, now)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("ramp.gates_unread")
        why = f"the gates can't be read: {type(error).__name__}: {error}"
        return [Answer(NO_DATA, {"why": why}) for _ in questions]


def _held(ramps: Collection[int], now: datetime) -> Mapping[str, Sequence[Hold]]:
    """What holds these ramps, by switch. Plans are only read while something does at all."""
    standing = holds.list_holds() if ramps else []
    if not standing:
        return {}
    plans = Ramp.objects.filter(pk__in=ramps).values_list("switch_id", "plan")
    ways = [holds.HoldTarget(switch, frozenset(_slos(plan))) for switch, plan in plans]
    return holds.find_blocking_holds(standing, ways, now)


def _slos(plan: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Those that any step has a gate on."""
    return (str(gate["slo"]) for step in plan for gate in step["gates"] if "slo" in gate)


def _looked(
    turn: Turn,
    ramp: Ramp,
    step: JobStep,
    said: Mapping[str, Sequence[Answer]],
    held: Sequence[Hold],
    now: datetime,
) -> Look:
    job = turn.job
    answers = said.get(approval_target(ramp, step.index), ())
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
        # How long a rule has been in the way is not how long data has been missing.
        blind_since=None
        if step.data.get(transitions.HELD_FOR) == transitions.RULES
        else ramp.blind_since,
        held=[one.why for one in held[:MAX_HOLDS]],
    )
    seen = [Seen(kinds.describe(gate), gate["verdict"], _why(gate)) for gate in found]
    return Look(turn, ramp, step, found, decide(standing, seen, now), is_held=bool(held))


def _why(gate: Mapping[str, Any]) -> str:
    """That a person is waited for is told once, whatever they are told meanwhile."""
    return "" if gate["verdict"] == WAITING else descriptions.why(gate["evidence"])


def _is_news(look: Look, now: datetime) -> bool:
    for kept, found in zip(look.step.data["gates"] if look.gates else (), look.gates, strict=True):
        if kept.get("verdict") != found["verdict"]:
            return True
        lately = timestamp(now - KEEP_EVERY) < kept.get("checked_at", "") <= timestamp(now)
        if not lately and kept.get("evidence") != found["evidence"]:
            return True
    return False
