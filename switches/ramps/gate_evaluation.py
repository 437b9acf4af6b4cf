"""Evaluation of the gates of many ramps in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError
from django.db.models import F

from controlplane.core.canonical import timestamp
from controlplane.core.gates import holds, kinds
from controlplane.core.gates import services as gates
from controlplane.core.gates.models import Hold
from controlplane.core.gates.questions import NO_DATA, WAITING, GateAnswer, GateQuestion
from controlplane.core.jobs import claims
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.change_notices import notify_changed
from switches.models import Ramp

from . import clock_correction, transitions
from . import plan as plans
from .decision import CurrentStep, GateResult, Next, RampDecision, decide
from .questions import approval_target, build_questions

STORE_INTERVAL = timedelta(seconds=5)
MAX_HOLDS = 3
"""Maximum holds of operators that a ramp's hold reason names."""

log = structlog.get_logger(__name__)


@dataclass
class RampEvaluation:
    """The gate results of a ramp's current step, and the decision that follows from them.

    `gates` has the new results, empty if evaluating failed; `step.data` has those stored before.
    `is_held` is True if an operator's hold on ramps applies to this one.
    """

    turn: LeasedJob
    ramp: Ramp
    step: JobStep
    gates: list[dict[str, Any]]
    decision: RampDecision
    is_held: bool = False


def evaluate_ramps(turns: Sequence[LeasedJob], now: datetime) -> list[RampEvaluation]:
    """Evaluate the gates of leased or locked ramps, and decide each ramp's next transition.

    Ramps that have ended are left out. A ramp is compensated if its evaluation raises an error.
    """
    jobs = [turn.job.pk for turn in turns]
    ramps = Ramp.objects.only("switch_id", "blind_since").in_bulk(jobs)
    steps = {
        step.job_id: step
        for step in JobStep.objects.filter(
            job_id__in=jobs, index=F("job__step_index"), state=JobStep.State.RUNNING
        )
    }
    # A ramp that ended since it was claimed has no running step.
    running = [
        (turn, ramps[turn.job.pk], steps[turn.job.pk])
        for turn in turns
        if turn.job.pk in steps and turn.job.pk in ramps
    ]
    clock_correction.correct_times(running, now)
    answers = _answer_gates(running, now)
    held = _find_holds([ramp.pk for _, ramp, _ in running], now)
    evaluations = []
    for turn, ramp, step in running:
        try:
            evaluation = _evaluate(turn, ramp, step, answers, held.get(ramp.switch_id, ()), now)
        except Exception as error:
            log.exception("ramp.evaluation_failed", ramp=ramp.pk)
            why = f"It can't be evaluated: {type(error).__name__}: {error}"
            decision = RampDecision(Next.COMPENSATE, why)
            evaluation = RampEvaluation(turn, ramp, step, [], decision)
        evaluations.append(evaluation)
    return evaluations


def select_changed(evaluations: Sequence[RampEvaluation], now: datetime) -> list[RampEvaluation]:
    """Return the evaluations whose gate results are worth storing.

    These have a new verdict, or new evidence while the stored evidence is over 5 s old.
    """

    def is_changed(stored: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        lately = timestamp(now - STORE_INTERVAL) < stored.get("checked_at", "") <= timestamp(now)
        has_new_evidence = stored.get("evidence") != result["evidence"]
        return stored.get("verdict") != result["verdict"] or (has_new_evidence and not lately)

    return [
        evaluation
        for evaluation in evaluations
        if evaluation.gates
        and any(map(is_changed, evaluation.step.data["gates"], evaluation.gates))
    ]


def store_results(evaluations: Sequence[RampEvaluation], now: datetime) -> None:
    """Store gate results in one statement; skip ramps that another worker has taken over."""
    if not evaluations:
        return
    checked_at = timestamp(now)
    for evaluation in evaluations:
        evaluation.gates = [{**gate, "checked_at": checked_at} for gate in evaluation.gates]
        evaluation.step.data = {**evaluation.step.data, "gates": evaluation.gates}
    claims.store_step_data([(evaluation.turn, evaluation.step) for evaluation in evaluations])
    notify_changed("ramps", *(str(evaluation.ramp.pk) for evaluation in evaluations))


def _answer_gates(
    running: Sequence[tuple[LeasedJob, Ramp, JobStep]], now: datetime
) -> Mapping[str, Sequence[GateAnswer]]:
    questions = [
        question
        for _, ramp, step in running
        for question in build_questions(
            ramp, step.index, step.data["gates"], step.started_at or now
        )
    ]
    answers = _evaluate_questions(questions, now) if questions else []
    by_step = defaultdict(list)
    for question, answer in zip(questions, answers, strict=True):
        by_step[question.step].append(answer)
    return by_step


def _evaluate_questions(questions: Sequence[GateQuestion], now: datetime) -> list[GateAnswer]:
    """Return the verdict and evidence of each gate in `questions`, in order.

    If evaluating fails, all verdicts are NO_DATA, which holds the ramps. Database errors are
    raised.
    """
    try:
        return gates.evaluate_questions(questions, now)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("ramp.gates_unreadable")
        why = f"the gates can't be read: {type(error).__name__}: {error}"
        return [GateAnswer(NO_DATA, {"why": why}) for _ in questions]


def _find_holds(ramps: Collection[int], now: datetime) -> Mapping[str, Sequence[Hold]]:
    all_holds = holds.list_holds() if ramps else []
    if not all_holds:
        return {}
    rows = Ramp.objects.filter(pk__in=ramps).values_list("switch_id", "plan")
    targets = [
        holds.HoldTarget(
            switch,
            plans.list_slos(plan),
        )
        for switch, plan in rows
    ]
    return holds.find_blocking_holds(all_holds, targets, now)


def _evaluate(
    turn: LeasedJob,
    ramp: Ramp,
    step: JobStep,
    answers_by_step: Mapping[str, Sequence[GateAnswer]],
    held: Sequence[Hold],
    now: datetime,
) -> RampEvaluation:
    job = turn.job
    answers = answers_by_step.get(approval_target(ramp, step.index), ())
    results = [
        {**spec, "verdict": answer.verdict, "evidence": dict(answer.evidence)}
        for spec, answer in zip(step.data["gates"], answers, strict=True)
    ]
    if job.state == Job.State.FAILED:
        return RampEvaluation(turn, ramp, step, results, RampDecision(Next.COMPENSATE, job.error))
    current = CurrentStep(
        state=job.state,
        dwell_until=step.due_at or now,
        max_hold=timedelta(seconds=step.data["max_hold_seconds"]),
        # While a rule blocks the step, `blind_since` is the start of that block.
        blind_since=None
        if step.data.get(transitions.HELD_FOR) == transitions.RULES
        else ramp.blind_since,
        held=[f"{hold.why}, since {hold.since:%-d %b %H:%M} UTC" for hold in held[:MAX_HOLDS]],
    )
    gate_results = [GateResult(_describe_result(gate), gate["verdict"]) for gate in results]
    return RampEvaluation(
        turn, ramp, step, results, decide(current, gate_results, now), is_held=bool(held)
    )


def _describe_result(gate: Mapping[str, Any]) -> str:
    # The explanation of a waiting gate varies, which must not change the hold reason.
    return (kinds.describe_gate if gate["verdict"] == WAITING else kinds.describe_finding)(gate)
