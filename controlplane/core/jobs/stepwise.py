"""Jobs whose steps are functions, run in order: retried, resumed, compensated.

A step may be begun any number of times, by any number of workers, one after the other. So it has to
be safe to repeat, by its own transaction or by the key of a side effect.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog

from controlplane.core.jobs import claims, endings, failures
from controlplane.core.jobs.claims import LEASE, LeasedJob, LeaseLost
from controlplane.core.jobs.effects import AlreadyDone
from controlplane.core.jobs.kinds import Probe, Work
from controlplane.core.jobs.models import Job, JobStep

MAX_ATTEMPTS = 5
MAX_RESTARTS = 5
FIRST_PAUSE = timedelta(seconds=1)
COMPENSATE_AGAIN = timedelta(seconds=30)
BEAT = timedelta(seconds=30)
"""Longest time between two runs of a waiting step, so that its job keeps its heartbeat."""
DIED_TWICE = 2 * LEASE
"""Time with an unreturned lease after which more than one worker died compensating."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class StepPassed:
    """The step is complete; `output` is added to its data."""

    output: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepContinues:
    """The step continues at `at`; `holding` says why, if it is held up.

    It may be run earlier: a waiting job renews its heartbeat every half minute.
    """

    at: datetime
    holding: str = ""


@dataclass(frozen=True)
class StepKind:
    """A step: its action, and its compensation if it or a later step fails for good.

    An error is final once the step was begun `most_attempts` times. Deaths of its worker are
    allowed beyond that, but not without limit: the step may be what kills it.
    """

    name: str
    run: Callable[[LeasedJob, JobStep, datetime, Probe], StepPassed | StepContinues]
    compensate: Callable[[LeasedJob, JobStep, datetime], None] | None = None
    most_attempts: int = MAX_ATTEMPTS


def build_worker(steps: Sequence[StepKind]) -> Work:
    """Return the work function of a kind whose jobs have these steps."""

    def work(turns: Sequence[LeasedJob], now: datetime, probe: Probe) -> int:
        moved, failed, clock = 0, [], failures.start_clock(now)
        # What kills its worker, or the connection, is tried after what does not.
        for turn in sorted(turns, key=lambda turn: turn.job.attempts):
            try:
                moved += _run_steps(turn, steps, clock, probe)
            except LeaseLost:
                claims.count_stopped_write(turn.job.pk)
            except Exception as error:  # One that can't go on must not keep the others.
                if failures.is_database_away(error):
                    raise
                error.add_note(str(turn.job))
                failed.append(error)
        if failed:
            raise ExceptionGroup("some jobs could not go on", failed)
        return moved

    return work


def _run_steps(
    turn: LeasedJob, steps: Sequence[StepKind], clock: Callable[[], datetime], probe: Probe
) -> bool:
    """Run the current step and those after it until one has to wait; True if any passed."""
    moved = False
    if turn.job.state == Job.State.FAILED:
        if turn.inherited:
            _count_compensation(turn, clock())
        return _compensate(turn, steps, clock())
    while turn.job.is_live:
        now, kind = clock(), steps[turn.job.step_index]
        step = turn.job.steps.get(index=turn.job.step_index)
        probe(f"step.{kind.name}.found")
        if not _take_up(turn, step, kind, steps, now, probe):
            return moved
        try:
            result = _run(turn, step, kind, now, probe)
            if isinstance(result, StepPassed):
                _pass(turn, step, result, len(steps), clock())
        except LeaseLost:
            raise
        except Exception as error:
            if failures.is_database_away(error):
                raise
            _failed(turn, step, kind, steps, failures.describe_error(error), clock())
            return moved
        if isinstance(result, StepContinues):
            state = Job.State.HOLDING if result.holding else Job.State.RUNNING
            at = min(result.at, now + BEAT)
            turn.change(next_at=at, state=state, hold_reason=result.holding)
            return moved
        probe(f"step.{kind.name}.passed")
        turn.inherited, moved = False, True
    return moved


def _run(
    turn: LeasedJob, step: JobStep, kind: StepKind, now: datetime, probe: Probe
) -> StepPassed | StepContinues:
    try:
        result = kind.run(turn, step, now, probe)
    except AlreadyDone:  # By a worker that died before it could say so.
        claims.count_stopped_write(turn.job.pk)
        result = StepPassed()
    probe(f"step.{kind.name}.run")
    return result


def _take_up(
    turn: LeasedJob,
    step: JobStep,
    kind: StepKind,
    steps: Sequence[StepKind],
    now: datetime,
    probe: Probe,
) -> bool:
    """Begin or continue the step under a new lease; False if it must not run now."""
    if step.state == JobStep.State.RUNNING and not turn.inherited:
        if turn.job.heartbeat_at != now:  # Others took their time since it was claimed.
            turn.heartbeat(now)
        return True
    if step.attempts >= kind.most_attempts + MAX_RESTARTS:
        died = "Its workers died again and again, or took longer than their lease."
        _failed(turn, step, kind, steps, died, now)
        return False
    # Further ahead than a pause lasts it was put before the clock was set back.
    if step.due_at is not None and now < step.due_at <= now + _retry_delay(step):
        turn.change(next_at=min(step.due_at, now + BEAT))
        return False
    _begin(turn, step, now)
    probe(f"step.{kind.name}.begun")
    return True


def _retry_delay(step: JobStep) -> timedelta:
    """Return the delay after a failed attempt."""
    pause: timedelta = FIRST_PAUSE * 2 ** (max(step.attempts, 1) - 1)
    return pause


def _begin(turn: LeasedJob, step: JobStep, now: datetime) -> None:
    job = turn.job
    with turn.together():
        turn.heartbeat(now)
        turn.change(attempts=job.attempts + 1, started_at=job.started_at or now)
        step.attempts, step.state = step.attempts + 1, JobStep.State.RUNNING
        step.started_at, step.due_at = step.started_at or now, None
        step.save(update_fields=["attempts", "state", "started_at", "due_at"])
    turn.inherited = False


def _pass(turn: LeasedJob, step: JobStep, result: StepPassed, steps: int, now: datetime) -> None:
    with turn.together():
        step.data = {**step.data, **result.output}
        step.state, step.finished_at, step.error = JobStep.State.PASSED, now, ""
        step.save(update_fields=["data", "state", "finished_at", "error"])
        _go_to_next(turn, steps, now)


def _go_to_next(turn: LeasedJob, steps: int, now: datetime) -> None:
    index = turn.job.step_index + 1
    going_on: dict[str, Any] = {
        "state": Job.State.RUNNING,
        "hold_reason": "",
        "error": "",
        "checkpoint": None,
    }
    if turn.job.total == steps:  # Its progress is that of its steps, not of items in them.
        going_on["done"] = index
    if index < steps:
        turn.change(step_index=index, next_at=now, **going_on)
        return
    over = {**going_on, "state": Job.State.COMPLETED, "finished_at": now, "next_at": None}
    turn.change(**over)
    endings.close_call(turn.job, now)


def _failed(
    turn: LeasedJob,
    step: JobStep,
    kind: StepKind,
    steps: Sequence[StepKind],
    said: str,
    now: datetime,
) -> None:
    """Retry later, or give up: compensate and announce it."""
    log.warning("job.step_failed", job=turn.job.pk, step=kind.name, error=said)
    with turn.together():
        step.error = said
        if step.attempts < kind.most_attempts:
            step.due_at = now + _retry_delay(step)
            turn.change(next_at=min(step.due_at, now + BEAT), error=said)
            step.state = JobStep.State.PENDING  # So that the next try counts as one.
            step.save(update_fields=["state", "error", "due_at"])
            return
        step.state, step.finished_at = JobStep.State.FAILED, now
        step.save(update_fields=["state", "error", "finished_at"])
        turn.change(state=Job.State.FAILED, error=said, finished_at=now, next_at=now)
        endings.announce_failure(turn.job, now)
    _compensate(turn, steps, now)


def _count_compensation(turn: LeasedJob, now: datetime) -> None:
    """Record another attempt before it can kill another worker."""
    job, again = turn.job, now + COMPENSATE_AGAIN
    with turn.together():
        turn.heartbeat(now)
        turn.change(attempts=job.attempts + 1, next_at=again)
        if job.finished_at is not None and now - job.finished_at < DIED_TWICE:
            return
        turn.change(compensation_failed_at=job.compensation_failed_at or now)
        died = "Whoever takes it back dies of it, or takes longer than a lease."
        endings.call_failed_compensation(job, died, now)


def _compensate(turn: LeasedJob, steps: Sequence[StepKind], now: datetime) -> bool:
    """Compensate the steps that were begun, last first.

    A step that can't be compensated calls a person and is retried.
    """
    for step in turn.job.steps.exclude(state=JobStep.State.PENDING).order_by("-index"):
        compensate = steps[step.index].compensate
        if compensate is None or step.state == JobStep.State.COMPENSATED:
            continue
        try:
            compensate(turn, step, now)
        except LeaseLost:
            raise
        except AlreadyDone:
            claims.count_stopped_write(turn.job.pk)
        except Exception as error:
            if failures.is_database_away(error):
                raise
            _not_compensated(turn, failures.describe_error(error), now)
            return False
        JobStep.objects.filter(pk=step.pk).update(state=JobStep.State.COMPENSATED)
    with turn.together():
        turn.change(next_at=None, compensated_at=now)
        endings.close_call(turn.job, now)
    return True


def _not_compensated(turn: LeasedJob, said: str, now: datetime) -> None:
    """Record the failed compensation in its own transaction: calling a person may fail."""
    log.warning("job.not_compensated", job=turn.job.pk, error=said)
    failed_at = turn.job.compensation_failed_at or now
    turn.change(next_at=now + COMPENSATE_AGAIN, compensation_failed_at=failed_at)
    with turn.together():
        endings.call_failed_compensation(turn.job, said, now)
