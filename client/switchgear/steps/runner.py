"""The runner of jobs, which resumes a job where its last worker stopped."""

import contextlib
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from switchgear import journal
from switchgear.failures.classification import FailureClass, classify
from switchgear.failures.error_labels import describe_error
from switchgear.failures.responses import respond
from switchgear.journal import log
from switchgear.lazy import asyncio
from switchgear.refusals import Refused
from switchgear.steps.compensation import compensate_steps
from switchgear.steps.context import Approve
from switchgear.steps.drivers import CallRequest, Execution, drive, drive_async
from switchgear.steps.errors import (
    JobCompleted,
    JobTaken,
    LeaseLost,
    NotApproved,
    PlanChanged,
)
from switchgear.steps.heartbeat import HeartbeatThread
from switchgear.steps.job_run import JobRun, StepFailed
from switchgear.steps.jobs import Job
from switchgear.steps.json_values import json_value, require_text
from switchgear.steps.records import (
    ApprovalState,
    EffectState,
    JobRecord,
    JobStatus,
    Lease,
    Progress,
)
from switchgear.steps.risks import Risk
from switchgear.steps.store import Store


class Runner:
    """A worker that runs jobs from `store`; `jobs` are their definitions.

    Any number of runners, in threads or processes, may share a store; a job is run by one runner at
    a time. `approve` requests decisions about steps with a risk of `approve_from` or higher;
    without `approve`, or if it returns None, the job pauses until :meth:`approve` or
    :meth:`decline` is called.

    A worker sends a heartbeat every `heartbeat_seconds`; a job without one for `stuck_seconds` may
    be taken over. A refused step pauses its job: if a breaker is open, until it may admit calls;
    otherwise, for example if a switch is engaged, for `refused_seconds`. `clock` returns UNIX
    seconds and has to agree on all workers.
    """

    def __init__(
        self,
        store: Store,
        jobs: Iterable[Job],
        *,
        approve: Approve | None = None,
        approve_from: Risk = Risk.CRITICAL,
        heartbeat_seconds: float = 30.0,
        stuck_seconds: float = 300.0,
        refused_seconds: float = 30.0,
        clock: Callable[[], float] = time.time,
        worker: str | None = None,
    ) -> None:
        if not 0 < heartbeat_seconds < stuck_seconds:
            raise ValueError("heartbeat_seconds must be above 0 and below stuck_seconds")
        self._store = store
        self._jobs = {job.name: job for job in jobs}
        self._approve = approve
        self._approve_from = approve_from
        self._stuck_seconds = stuck_seconds
        self._refused_seconds = refused_seconds
        self._clock = clock
        self._worker = worker
        self._heartbeat = HeartbeatThread(
            lambda lease: store.beat(lease, clock()), heartbeat_seconds
        )

    def add(
        self,
        name: str,
        input: Any = None,
        *,
        job_id: str | None = None,
        tenant: str = "",
        user: str = "",
    ) -> str:
        """Add a new job of the definition called `name` to the store, and return its id.

        If a job with the id `job_id` exists, leave that job unchanged. `tenant` and `user` are
        stored for the job's steps. Raises :class:`TypeError` for an input that is not JSON,
        :class:`TypeError` and :class:`ValueError` for text that can't be stored, and
        :class:`LookupError` for an unknown name.
        """
        record = JobRecord(
            id=str(uuid.uuid4()) if job_id is None else require_text(job_id, "the id of a job"),
            name=name,
            plan=self._job(name).plan,
            input=json_value(input, "the input of a job"),
            tenant=require_text(tenant, "the tenant of a job", may_be_empty=True),
            user=require_text(user, "the user of a job", may_be_empty=True),
            created_at=self._clock(),
        )
        self._store.add(record)
        return record.id

    def run(self, job_id: str) -> JobRecord:
        """Run a job until it ends or pauses, and return its record.

        Raises :class:`JobTaken` if another worker runs it, :class:`LeaseLost` if another worker
        takes it over, :class:`PlanChanged`, :class:`LookupError` for an unknown id or name, and the
        errors of the store.
        """
        return drive(self._execute(job_id))

    async def arun(self, job_id: str) -> JobRecord:
        """Like :meth:`run`, for coroutines.

        When this coroutine is cancelled, it first waits for a running plain function to return;
        then the job can be run again.
        """
        return await drive_async(self._execute(job_id))

    def resume(self, job_id: str) -> JobRecord:
        """Like :meth:`run`, but a failed job that was not compensated continues at its failed step.

        If that step was not approved, a new approval request is opened.
        """
        return drive(self._execute(job_id, also_failed=True))

    async def aresume(self, job_id: str) -> JobRecord:
        return await drive_async(self._execute(job_id, also_failed=True))

    def compensate(self, job_id: str) -> JobRecord:
        """Undo the completed steps of a job that is paused, or that failed and was held.

        Failed compensations are tried again. Raises :class:`JobCompleted`, and the errors of
        :meth:`run`.
        """
        return drive(self._execute(job_id, also_failed=True, is_undoing=True))

    async def acompensate(self, job_id: str) -> JobRecord:
        return await drive_async(self._execute(job_id, also_failed=True, is_undoing=True))

    def run_due(self, most: int = 20) -> list[JobRecord]:
        """Run up to `most` due jobs, one after the other, and return their records.

        New and stuck jobs are due, and jobs whose pause is over. Call this method every few
        seconds. Errors of a job are logged.
        """
        done = []
        for job_id in self._list_due(most):
            with _log_failures(job_id):
                done.append(self.run(job_id))
        return done

    async def arun_due(self, most: int = 20) -> list[JobRecord]:
        done = []
        for job_id in await asyncio.to_thread(self._list_due, most):
            with _log_failures(job_id):
                done.append(await self.arun(job_id))
        return done

    def look(self, job_id: str) -> Progress:
        """Return a job with its steps, effects and approvals. Raises :class:`LookupError`."""
        progress = self._store.look(job_id)
        if progress is None:
            raise LookupError(f"there is no job {job_id}")
        return progress

    def approve(self, job_id: str, step: str, *, by: str = "") -> bool:
        """Approve the step of a job; return False if no approval request for it is open.

        Raises :class:`LookupError` for an unknown job or step.
        """
        return self._decide(job_id, step, ApprovalState.GIVEN, by)

    def decline(self, job_id: str, step: str, *, by: str = "") -> bool:
        """Decline to approve the step of a job; return False if no request for it is open.

        The declined step fails.
        """
        return self._decide(job_id, step, ApprovalState.DECLINED, by)

    def settle(
        self, job_id: str, key: str, *, is_done: bool, kind: str = "", target: str = ""
    ) -> bool:
        """Record whether an effect of unknown state happened, by its `key`.

        Return False if no effect with this key is of unknown state. Raises :class:`ValueError` if
        several are: then pass `kind` or `target`.
        """
        state = EffectState.DONE if is_done else EffectState.NOT_DONE
        found = [
            each for each in self.look(job_id).unknown_effects
            if each.key == key and kind in ("", each.kind) and target in ("", each.target)
        ]  # fmt: skip
        if len(found) > 1:
            raise ValueError(f"{len(found)} effects of the job {job_id} have the key {key}")
        return bool(found) and self._store.settle(found[0], state)

    def _execute(
        self, job_id: str, *, also_failed: bool = False, is_undoing: bool = False
    ) -> Execution[JobRecord]:
        before: Progress = yield CallRequest(self.look, (job_id,))
        job = self._job(before.job.name)
        if before.job.plan != job.plan:
            raise PlanChanged(job_id, job.name)
        lease: Lease | None = yield CallRequest(self._claim, (job_id, also_failed, is_undoing))
        if lease is None:
            found: Progress = yield CallRequest(self.look, (job_id,))
            if is_undoing and found.job.status is JobStatus.COMPLETED:
                raise JobCompleted(job_id)
            if found.job.status in (JobStatus.COMPLETED, JobStatus.FAILED):
                return found.job
            raise JobTaken(job_id)
        with self._heartbeat.sending(lease, job.name):
            yield from self._run_claimed(job, lease, before, is_undoing)
        after: Progress = yield CallRequest(self.look, (job_id,))
        return after.job

    def _run_claimed(
        self, job: Job, lease: Lease, before: Progress, is_undoing: bool
    ) -> Execution[None]:
        """Run a job that this worker has claimed to its end or pause.

        If interrupted, release it to other workers.
        """
        job_run: JobRun | None = None
        try:
            if before.job.status is JobStatus.RUNNING:
                silent = self._clock() - (before.job.heartbeat or before.job.created_at)
                journal.record("job_stuck", job.name, job=before.job.id, silent_seconds=silent)
            progress: Progress = yield CallRequest(self.look, (lease.job_id,))
            job_run = JobRun(
                job, self._store, lease, progress, self._clock, self._approve, self._approve_from
            )
            if is_undoing or job_run.record.is_compensating:
                yield from self._compensate(job_run, before.job, is_again=is_undoing)
            else:
                if before.job.status is JobStatus.FAILED:
                    yield from job_run.reopen_approvals()
                yield from self._run_forward(job_run)
        except LeaseLost:
            if not lease.is_lost:
                lease.is_lost = True
                journal.record("job_lost", job.name, job=lease.job_id)
            raise
        except Refused as refusal:
            if job_run is None:
                raise
            yield from job_run.pause(refusal, self._refused_seconds)
        except BaseException:
            self._release(lease, job_run.record if job_run else before.job)
            raise

    def _run_forward(self, job_run: JobRun) -> Execution[None]:
        try:
            yield from job_run.run_steps()
        except StepFailed as failed:
            error = failed.__cause__ or failed
            reason = f"{job_run.job.steps[failed.position].name}: {describe_error(error)}"
            if not isinstance(error, NotApproved):
                respond(error, job_run.job.name)
            is_held = classify(error) is FailureClass.CATASTROPHIC  # People decide.
            if job_run.job.on_failure == "compensate" and not is_held:
                yield from compensate_steps(job_run, failed.position, reason)
            yield from job_run.end(JobStatus.FAILED, reason)
        else:
            yield from job_run.end(JobStatus.COMPLETED, None)

    def _compensate(self, job_run: JobRun, before: JobRecord, *, is_again: bool) -> Execution[None]:
        reason = job_run.record.failure
        if before.status is JobStatus.FAILED:
            reason = reason or before.reason
        yield from compensate_steps(job_run, job_run.record.current, reason, is_again=is_again)
        yield from job_run.end(JobStatus.FAILED, reason or "compensated")

    def _release(self, lease: Lease, record: JobRecord) -> None:
        """Make an interrupted job pending, so that another worker can take it over at once."""
        try:
            self._store.save(lease, replace(record, status=JobStatus.PENDING, reason=None))
        except Exception:  # The job counts as stuck later.
            log.warning("switchgear: the job %s counts as running", record.id)

    def _claim(self, job_id: str, also_failed: bool, is_undoing: bool) -> Lease | None:
        worker = self._worker or f"{socket.gethostname()}:{os.getpid()}"
        now = self._clock()
        return self._store.claim(
            job_id, worker, now, self._stuck_seconds, also_failed=also_failed, is_undoing=is_undoing
        )

    def _list_due(self, most: int) -> list[str]:
        return self._store.due(tuple(self._jobs), self._clock(), self._stuck_seconds, most)

    def _decide(self, job_id: str, step: str, state: ApprovalState, by: str) -> bool:
        plan = self.look(job_id).job.plan
        if step not in plan:
            raise LookupError(f"the job {job_id} has no step named {step}")
        require_text(by, "the name of the person who decides", may_be_empty=True)
        return self._store.decide(job_id, plan.index(step), state, by, self._clock()) > 0

    def _job(self, name: str) -> Job:
        if name not in self._jobs:
            raise LookupError(f"there is no job named {name}")
        return self._jobs[name]


@contextlib.contextmanager
def _log_failures(job_id: str) -> Iterator[None]:
    """Context manager: log an error raised in the block instead of raising it."""
    try:
        yield
    except (JobTaken, LeaseLost):
        pass  # Another worker runs the job.
    except Exception as error:
        log.error("switchgear: the job %s did not run: %s", job_id, describe_error(error))
