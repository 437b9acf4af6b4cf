"""Worker for job kinds whose steps are functions: runs, retries and compensates steps in order.

Workers may run a step repeatedly, so a step must be idempotent: it does all its work in one
transaction, or passes the key of its side effect to the external system.
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
"""Maximum time between two runs of a waiting step, so that the job's heartbeat stays fresh."""
DIED_TWICE = 2 * LEASE
"""Time after a job's failure from which a worker's death counts as a failed compensation.

By then at least two workers have died, or exceeded their lease, while compensating the job.
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class StepPassed:
    """Result of a completed step; `output` is merged into the step's data."""

    output: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepContinues:
    """Result of an incomplete step, which runs again at `at` or earlier.

    It runs at least every 30 seconds, to renew the job's heartbeat. `holding` is the reason if the
    step is held.
    """

    at: datetime
    holding: str = ""


@dataclass(frozen=True)
class StepKind:
    """A step of a job kind: the function that runs it, and the one that undoes it.

    `compensate` is called if this step or a later one fails for good. An error in attempt
    `most_attempts` is final. Attempts during which the worker dies may exceed this by
    `MAX_RESTARTS`; there is a limit because the step itself may kill its worker.
    """

    name: str
    run: Callable[[LeasedJob, JobStep, datetime, Probe], StepPassed | StepContinues]
    compensate: Callable[[LeasedJob, JobStep, datetime], None] | None = None
    most_attempts: int = MAX_ATTEMPTS


def build_worker(steps: Sequence[StepKind]) -> Work:
    """Return the function that runs leased jobs through these steps (:attr:`JobKind.work`)."""

    def work(jobs: Sequence[LeasedJob], now: datetime, probe: Probe) -> int:
        moved, failed, clock = 0, [], failures.start_clock(now)
        # Jobs that kill their worker or the connection have many attempts and run last.
        for leased in sorted(jobs, key=lambda leased: leased.job.attempts):
            try:
                moved += _StepRunner(leased, steps, clock, probe).run()
            except LeaseLost:
                claims.count_stopped_write(leased.job.pk)
            except Exception as error:  # The other jobs must still run.
                if failures.is_database_away(error):
                    raise
                error.add_note(str(leased.job))
                failed.append(error)
        if failed:
            raise ExceptionGroup("some jobs could not continue", failed)
        return moved

    return work


@dataclass(frozen=True)
class _StepRunner:
    """Runs or compensates the steps of one leased job."""

    leased: LeasedJob
    steps: Sequence[StepKind]
    clock: Callable[[], datetime]
    probe: Probe

    def run(self) -> bool:
        """Run steps until one has to wait or fails; return True if at least one passed."""
        leased, job, moved = self.leased, self.leased.job, False
        if job.state == Job.State.FAILED:
            if leased.inherited:
                self._count_compensation_attempt(self.clock())
            return self._compensate_steps(self.clock())
        while job.is_live:
            now, kind = self.clock(), self.steps[job.step_index]
            step = job.steps.get(index=job.step_index)
            self.probe(f"step.{kind.name}.found")
            if not self._take_up(step, kind, now):
                return moved
            try:
                result = self._run_step(step, kind, now)
                if isinstance(result, StepPassed):
                    self._pass_step(step, result, self.clock())
            except LeaseLost:
                raise
            except Exception as error:
                if failures.is_database_away(error):
                    raise
                self._handle_failure(step, kind, failures.describe_error(error), self.clock())
                return moved
            if isinstance(result, StepContinues):
                state = Job.State.HOLDING if result.holding else Job.State.RUNNING
                at = min(result.at, now + BEAT)
                leased.change(next_at=at, state=state, hold_reason=result.holding)
                return moved
            self.probe(f"step.{kind.name}.passed")
            leased.inherited, moved = False, True
        return moved

    def _run_step(self, step: JobStep, kind: StepKind, now: datetime) -> StepPassed | StepContinues:
        try:
            result = kind.run(self.leased, step, now, self.probe)
        except AlreadyDone:  # By a worker that died before recording it.
            claims.count_stopped_write(self.leased.job.pk)
            result = StepPassed()
        self.probe(f"step.{kind.name}.run")
        return result

    def _take_up(self, step: JobStep, kind: StepKind, now: datetime) -> bool:
        """Make the step ready to run: begin an attempt, or renew the lease of a running one.

        Return False if the step must not run: it isn't due, or has used up its attempts.
        """
        leased, job = self.leased, self.leased.job
        if step.state == JobStep.State.RUNNING and not leased.inherited:
            if job.heartbeat_at != now:  # Other jobs of the batch ran since the claim.
                leased.heartbeat(now)
            return True
        if step.attempts >= kind.most_attempts + MAX_RESTARTS:
            died = "Its workers repeatedly crashed or exceeded their lease."
            self._handle_failure(step, kind, died, now)
            return False
        # Ignore a due time further ahead than the retry delay: the clock was set back since.
        if step.due_at is not None and now < step.due_at <= now + _retry_delay(step):
            leased.change(next_at=min(step.due_at, now + BEAT))
            return False
        with leased.together():
            leased.heartbeat(now)
            leased.change(attempts=job.attempts + 1, started_at=job.started_at or now)
            step.attempts, step.state = step.attempts + 1, JobStep.State.RUNNING
            step.started_at, step.due_at = step.started_at or now, None
            step.save(update_fields=["attempts", "state", "started_at", "due_at"])
        leased.inherited = False
        self.probe(f"step.{kind.name}.begun")
        return True

    def _pass_step(self, step: JobStep, result: StepPassed, now: datetime) -> None:
        leased, count = self.leased, len(self.steps)
        with leased.together():
            step.data = {**step.data, **result.output}
            step.state, step.finished_at, step.error = JobStep.State.PASSED, now, ""
            step.save(update_fields=["data", "state", "finished_at", "error"])
            index = leased.job.step_index + 1
            changes: dict[str, Any] = {"hold_reason": "", "error": "", "checkpoint": None}
            if leased.job.total == count:  # The job counts its steps, not items within them.
                changes["done"] = index
            if index < count:
                leased.change(state=Job.State.RUNNING, step_index=index, next_at=now, **changes)
            else:
                leased.change(state=Job.State.COMPLETED, finished_at=now, next_at=None, **changes)
                endings.close_escalation(leased.job, now)

    def _handle_failure(self, step: JobStep, kind: StepKind, error: str, now: datetime) -> None:
        """Schedule a retry, or fail the job and compensate its steps."""
        leased = self.leased
        log.warning("job.step_failed", job=leased.job.pk, step=kind.name, error=error)
        with leased.together():
            step.error = error
            if step.attempts < kind.most_attempts:
                step.due_at = now + _retry_delay(step)
                leased.change(next_at=min(step.due_at, now + BEAT), error=error)
                step.state = JobStep.State.PENDING  # So that the retry counts as an attempt.
                step.save(update_fields=["state", "error", "due_at"])
                return
            step.state, step.finished_at = JobStep.State.FAILED, now
            step.save(update_fields=["state", "error", "finished_at"])
            leased.change(state=Job.State.FAILED, error=error, finished_at=now, next_at=now)
            endings.announce_failure(leased.job, now)
        self._compensate_steps(now)

    def _count_compensation_attempt(self, now: datetime) -> None:
        """Count another attempt to compensate the job, because the worker of the last one died.

        If the job failed more than `DIED_TWICE` ago, also escalate the compensation as failed.
        """
        leased, job = self.leased, self.leased.job
        with leased.together():
            leased.heartbeat(now)
            leased.change(attempts=job.attempts + 1, next_at=now + COMPENSATE_AGAIN)
            if job.finished_at is not None and now - job.finished_at < DIED_TWICE:
                return
            leased.change(compensation_failed_at=job.compensation_failed_at or now)
            died = "The rollback repeatedly crashed or exceeded its lease."
            endings.escalate_failed_compensation(job, died, now)

    def _compensate_steps(self, now: datetime) -> bool:
        """Compensate the begun steps in reverse order; return False if one fails.

        A failed compensation is escalated and retried.
        """
        leased, job = self.leased, self.leased.job
        for step in job.steps.exclude(state=JobStep.State.PENDING).order_by("-index"):
            compensate = self.steps[step.index].compensate
            if compensate is None or step.state == JobStep.State.COMPENSATED:
                continue
            try:
                compensate(leased, step, now)
            except LeaseLost:
                raise
            except AlreadyDone:
                claims.count_stopped_write(job.pk)
            except Exception as error:
                if failures.is_database_away(error):
                    raise
                text = failures.describe_error(error)
                log.warning("job.not_compensated", job=job.pk, error=text)
                failed_at = job.compensation_failed_at or now
                # Recorded separately, because the escalation may fail too.
                leased.change(next_at=now + COMPENSATE_AGAIN, compensation_failed_at=failed_at)
                with leased.together():
                    endings.escalate_failed_compensation(job, text, now)
                return False
            JobStep.objects.filter(pk=step.pk).update(state=JobStep.State.COMPENSATED)
        with leased.together():
            leased.change(next_at=None, compensated_at=now)
            endings.close_escalation(job, now)
        return True


def _retry_delay(step: JobStep) -> timedelta:
    pause: timedelta = FIRST_PAUSE * 2 ** (max(step.attempts, 1) - 1)
    return pause
