"""Jobs whose steps are functions, done one after the other: retried, resumed, compensated.

A step may be begun any number of times, by any number of workers, one after the other: what it does
has to be safe to repeat, by its own transaction or by a side effect's key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, transaction

from controlplane.core.jobs import claims, endings
from controlplane.core.jobs.claims import LeaseLost, Turn
from controlplane.core.jobs.kinds import Probe, Work
from controlplane.core.jobs.models import Job, JobStep

MOST_ATTEMPTS = 5
MOST_DEATHS = 5
FIRST_PAUSE = timedelta(seconds=1)
COMPENSATE_AGAIN = timedelta(seconds=30)
BEAT = timedelta(seconds=30)
"""A step that waits for something is looked at this often at least, so that its job is alive."""
LONGEST_ERROR = 2000

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Passed:
    """The step is done; `output` is added to what is kept of it."""

    output: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Again:
    """The step is not over: to be looked at again at `at`; `holding` says why, if it is held up.

    It may be looked at earlier than that: a job that waits shows every half minute that it lives.
    """

    at: datetime
    holding: str = ""


@dataclass(frozen=True)
class StepKind:
    """A step: what it does, and what takes it back if it or a later one fails for good.

    An error ends it for good once it was begun `most_attempts` times. Deaths of its worker are
    allowed for beyond that, but not for ever: a step may be what kills it.
    """

    name: str
    run: Callable[[Turn, JobStep, datetime, Probe], Passed | Again]
    compensate: Callable[[Turn, JobStep, datetime], None] | None = None
    most_attempts: int = MOST_ATTEMPTS


def worker(steps: Sequence[StepKind]) -> Work:
    """The work of a kind whose jobs have these steps."""

    def work(turns: Sequence[Turn], now: datetime, probe: Probe) -> int:
        moved, failures = 0, []
        for turn in turns:
            try:
                moved += _go_on(turn, steps, now, probe)
            except LeaseLost:
                claims.stopped(turn.job.pk)
            except (OperationalError, InterfaceError):
                raise
            except Exception as error:  # One that can't go on must not keep the others.
                error.add_note(str(turn.job))
                failures.append(error)
        if failures:
            raise ExceptionGroup("some jobs could not go on", failures)
        return moved

    return work


def _go_on(turn: Turn, steps: Sequence[StepKind], now: datetime, probe: Probe) -> bool:
    """Do the present step, and those after it until one has to wait; True if any was passed."""
    moved = False
    if turn.job.state == Job.State.FAILED:
        return _compensate(turn, steps, now)
    while turn.job.is_live:
        kind = steps[turn.job.step_index]
        step = turn.job.steps.get(index=turn.job.step_index)
        probe(f"step.{kind.name}.found")
        if step.state != JobStep.State.RUNNING or turn.inherited:
            if step.attempts >= kind.most_attempts + MOST_DEATHS:
                died = "Its workers died again and again, or took longer than their lease."
                _failed(turn, step, kind, steps, died, now)
                return moved
            _begin(turn, step, now)
            probe(f"step.{kind.name}.begun")
        try:
            result = kind.run(turn, step, now, probe)
        except (LeaseLost, OperationalError, InterfaceError):
            raise
        except Exception as error:
            _failed(turn, step, kind, steps, _said(error), now)
            return moved
        probe(f"step.{kind.name}.run")
        if isinstance(result, Again):
            state = Job.State.HOLDING if result.holding else Job.State.RUNNING
            at = min(result.at, now + BEAT)
            turn.change(next_at=at, state=state, hold_reason=result.holding)
            return moved
        _pass(turn, step, result, len(steps), now)
        probe(f"step.{kind.name}.passed")
        turn.inherited, moved = False, True
    return moved


@transaction.atomic
def _begin(turn: Turn, step: JobStep, now: datetime) -> None:
    job = turn.job
    turn.change(attempts=job.attempts + 1, started_at=job.started_at or now)
    step.attempts, step.state = step.attempts + 1, JobStep.State.RUNNING
    step.started_at = step.started_at or now
    step.save(update_fields=["attempts", "state", "started_at"])
    turn.inherited = False


@transaction.atomic
def _pass(turn: Turn, step: JobStep, result: Passed, steps: int, now: datetime) -> None:
    step.data = {**step.data, **result.output}
    step.state, step.finished_at, step.error = JobStep.State.PASSED, now, ""
    step.save(update_fields=["data", "state", "finished_at", "error"])
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
    endings.over(turn.job, now)


def _failed(
    turn: Turn,
    step: JobStep,
    kind: StepKind,
    steps: Sequence[StepKind],
    said: str,
    now: datetime,
) -> None:
    """Try again later, or give up: take back what was done and say so."""
    log.warning("job.step_failed", job=turn.job.pk, step=kind.name, error=said)
    with transaction.atomic():
        step.error = said
        if step.attempts < kind.most_attempts:
            pause = FIRST_PAUSE * 2 ** (step.attempts - 1)
            turn.change(next_at=now + pause, error=said)
            step.state = JobStep.State.PENDING  # So that the next try counts as one.
            step.save(update_fields=["state", "error"])
            return
        step.state, step.finished_at = JobStep.State.FAILED, now
        step.save(update_fields=["state", "error", "finished_at"])
        turn.change(state=Job.State.FAILED, error=said, finished_at=now, next_at=now)
        endings.failed(turn.job, now)
    _compensate(turn, steps, now)


def _compensate(turn: Turn, steps: Sequence[StepKind], now: datetime) -> bool:
    """Take back the steps that were begun, the last first. One that can't be calls a person, and is
    tried again."""
    for step in turn.job.steps.exclude(state=JobStep.State.PENDING).order_by("-index"):
        compensate = steps[step.index].compensate
        if compensate is None or step.state == JobStep.State.COMPENSATED:
            continue
        try:
            compensate(turn, step, now)
        except (LeaseLost, OperationalError, InterfaceError):
            raise
        except Exception as error:
            again = now + COMPENSATE_AGAIN
            with transaction.atomic():
                turn.change(
                    next_at=again, compensation_failed_at=turn.job.compensation_failed_at or now
                )
                endings.not_compensated(turn.job, _said(error), now)
            return False
        JobStep.objects.filter(pk=step.pk).update(state=JobStep.State.COMPENSATED)
    with transaction.atomic():
        turn.change(next_at=None, compensated_at=now)
        endings.compensated(turn.job, now)
    return True


def _said(error: Exception) -> str:
    """What went wrong, as PostgreSQL takes it."""
    return f"{type(error).__name__}: {error}".replace("\x00", "")[:LONGEST_ERROR]
