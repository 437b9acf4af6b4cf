"""Runs jobs: each step once, from where the last worker left off."""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from switchgear import journal
from switchgear.failures.classification import FailureClass, classify
from switchgear.failures.error_labels import said_by
from switchgear.failures.responses import respond
from switchgear.lazy import asyncio
from switchgear.refusals import Refused
from switchgear.steps.compensation import backward
from switchgear.steps.context import Approve
from switchgear.steps.drivers import Ask, Course, drive, drive_async
from switchgear.steps.errors import (
    JobCompleted,
    JobTaken,
    LeaseLost,
    NotApproved,
    PlanChanged,
)
from switchgear.steps.heartbeat import Heart
from switchgear.steps.job_run import Running, StepFailed
from switchgear.steps.jobs import Job
from switchgear.steps.json_values import plain, worded
from switchgear.steps.pauses import paused, supervised
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

log = logging.getLogger("switchgear")


class Runner:
    """One worker for `jobs`, kept in `store`; any number may share a store, in threads or
    processes: a job is at one of them at a time.

    `approve` asks people about steps whose risk is `approve_from` or higher; without it, or while
    it gives None, such a job pauses until :meth:`approve`. A worker gives a sign of life every
    `heartbeat_seconds`; a job without one for `stuck_seconds` is another's to take over. A step
    that was refused (a breaker is open, a switch is engaged) pauses its job, for as long as the
    breaker says, or `refused_seconds`. `clock` gives UNIX seconds, the same on all workers.
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
        self._heart = Heart(lambda lease: store.beat(lease, clock()), heartbeat_seconds)

    def add(
        self,
        name: str,
        input: Any = None,
        *,
        job_id: str | None = None,
        tenant: str = "",
        user: str = "",
    ) -> str:
        """Keep a new job of this name to be run, and give its id. If a `job_id` is there already,
        it stays as it is. Raises :class:`TypeError` for an input that is no JSON,
        :class:`TypeError` and :class:`ValueError` for words that can't be kept, and
        :class:`LookupError` for a name that is not known here."""
        record = JobRecord(
            id=str(uuid.uuid4()) if job_id is None else worded(job_id, "the id of a job"),
            name=name,
            plan=self._job(name).plan,
            input=plain(input, "the input of a job"),
            tenant=worded(tenant, "the tenant of a job", may_be_empty=True),
            user=worded(user, "the user of a job", may_be_empty=True),
            created_at=self._clock(),
        )
        self._store.add(record)
        return record.id

    def run(self, job_id: str) -> JobRecord:
        """Go on with it until it is over or paused, and give it as it is then. Raises
        :class:`JobTaken`, :class:`LeaseLost` if it is taken over meanwhile, :class:`PlanChanged`,
        :class:`LookupError` for an unknown id or name, and what the store raises."""
        return drive(self._course(job_id))

    async def arun(self, job_id: str) -> JobRecord:
        """:meth:`run`, in an event loop. Once it is cancelled it waits for a step that is a plain
        function until that ends or asks its context; the job can be run again then."""
        return await drive_async(self._course(job_id))

    def resume(self, job_id: str) -> JobRecord:
        """:meth:`run`, also of a job that has failed and was not compensated: at that step. If that
        was not approved, people are asked anew."""
        return drive(self._course(job_id, also_failed=True))

    async def aresume(self, job_id: str) -> JobRecord:
        return await drive_async(self._course(job_id, also_failed=True))

    def compensate(self, job_id: str) -> JobRecord:
        """Undo what a job has done that has failed and was held, or is paused; also once more what
        could not be undone. Raises :class:`JobCompleted`, and what :meth:`run` raises."""
        return drive(self._course(job_id, also_failed=True, is_undoing=True))

    async def acompensate(self, job_id: str) -> JobRecord:
        return await drive_async(self._course(job_id, also_failed=True, is_undoing=True))

    def run_due(self, most: int = 20) -> list[JobRecord]:
        """Run what is due, one after the other: new, stuck, and paused ones whose time has come.
        Call it every few seconds. A job that can't be run is logged."""
        done = []
        for job_id in self._due(most):
            with supervised(job_id):
                done.append(self.run(job_id))
        return done

    async def arun_due(self, most: int = 20) -> list[JobRecord]:
        done = []
        for job_id in await asyncio.to_thread(self._due, most):
            with supervised(job_id):
                done.append(await self.arun(job_id))
        return done

    def look(self, job_id: str) -> Progress:
        """All that is known of it. Raises :class:`LookupError`."""
        found = self._store.look(job_id)
        if found is None:
            raise LookupError(f"there is no job {job_id}")
        return found

    def approve(self, job_id: str, step: str, *, by: str = "") -> bool:
        """A person says yes to what is asked about this step; False if nothing is, any more.
        Raises :class:`LookupError` for a job or a step that there is not."""
        return self._decide(job_id, step, ApprovalState.GIVEN, by)

    def decline(self, job_id: str, step: str, *, by: str = "") -> bool:
        """A person says no to it: the step fails."""
        return self._decide(job_id, step, ApprovalState.DECLINED, by)

    def settle(
        self, job_id: str, key: str, *, is_done: bool, kind: str = "", target: str = ""
    ) -> bool:
        """A person has looked whether the unknown effect `key` of this job happened; False if it is
        known. Raises :class:`ValueError` if several have this key: then say `kind` or `target`
        too; :class:`LookupError` for an unknown job."""
        state = EffectState.DONE if is_done else EffectState.NOT_DONE
        found = [
            each for each in self.look(job_id).unknown_effects
            if each.key == key and kind in ("", each.kind) and target in ("", each.target)
        ]  # fmt: skip
        if len(found) > 1:
            raise ValueError(f"{len(found)} effects of the job {job_id} have the key {key}")
        return bool(found) and self._store.settle(found[0], state)

    def _course(
        self, job_id: str, *, also_failed: bool = False, is_undoing: bool = False
    ) -> Course[JobRecord]:
        before: Progress = yield Ask(self.look, (job_id,))
        job = self._job(before.job.name)
        if before.job.plan != job.plan:
            raise PlanChanged(job_id, job.name)
        lease: Lease | None = yield Ask(self._claim, (job_id, also_failed, is_undoing))
        if lease is None:
            found: Progress = yield Ask(self.look, (job_id,))
            if is_undoing and found.job.status is JobStatus.COMPLETED:
                raise JobCompleted(job_id)
            if found.job.status in (JobStatus.COMPLETED, JobStatus.FAILED):
                return found.job
            raise JobTaken(job_id)
        with self._heart.keeping(lease, job.name):
            yield from self._led(job, lease, before, is_undoing)
        after: Progress = yield Ask(self.look, (job_id,))
        return after.job

    def _led(self, job: Job, lease: Lease, before: Progress, is_undoing: bool) -> Course[None]:
        """To its end, or to where it pauses. Whatever ends us lets others go on at once."""
        running: Running | None = None
        try:
            if before.job.status is JobStatus.RUNNING:
                silent = self._clock() - (before.job.heartbeat or before.job.created_at)
                journal.record("job_stuck", job.name, job=before.job.id, silent_seconds=silent)
            progress: Progress = yield Ask(self.look, (lease.job_id,))
            running = Running(
                job, self._store, lease, progress, self._clock, self._approve, self._approve_from
            )
            if is_undoing or running.record.is_compensating:
                yield from self._back(running, before.job, is_again=is_undoing)
            else:
                if before.job.status is JobStatus.FAILED:
                    yield from running.ask_anew()
                yield from self._through(running)
        except LeaseLost:
            if not lease.is_lost:
                lease.is_lost = True
                journal.record("job_lost", job.name, job=lease.job_id)
            raise
        except Refused as refusal:
            if running is None:
                raise
            yield from self._pause(running, refusal)
        except BaseException:
            self._let_go(lease, running.record if running else before.job)
            raise

    def _through(self, running: Running) -> Course[None]:
        try:
            yield from running.forward()
        except StepFailed as failed:
            error = failed.__cause__ or failed
            reason = f"{running.job.steps[failed.position].name}: {said_by(error)}"
            if not isinstance(error, NotApproved):
                respond(error, running.job.name)
            is_held = classify(error) is FailureClass.CATASTROPHIC  # People decide.
            if running.job.on_failure == "compensate" and not is_held:
                yield from backward(running, failed.position, reason)
            yield from self._end(running, JobStatus.FAILED, reason)
        else:
            yield from self._end(running, JobStatus.COMPLETED, None)

    def _back(self, running: Running, before: JobRecord, *, is_again: bool) -> Course[None]:
        """Its reason is why it failed, if it did."""
        reason = running.record.failure
        if before.status is JobStatus.FAILED:
            reason = reason or before.reason
        yield from backward(running, running.record.current, reason, is_again=is_again)
        yield from self._end(running, JobStatus.FAILED, reason or "compensated")

    def _end(self, running: Running, status: JobStatus, reason: str | None) -> Course[None]:
        now = self._clock()
        changes: dict[str, Any] = {"status": status, "reason": reason, "completed_at": now}
        yield running.ask(running.keep, replace(running.record, **changes))
        name = "job_completed" if status is JobStatus.COMPLETED else "job_failed"
        seconds = max(now - (running.record.started_at or now), 0.0)
        journal.record(name, running.job.name, job=running.record.id, seconds=seconds)

    def _pause(self, running: Running, refusal: Refused) -> Course[None]:
        rows = paused(running.record, refusal, self._clock(), self._refused_seconds)
        yield running.ask(running.keep, *rows)
        why = type(refusal).__name__
        journal.record("job_paused", running.job.name, job=running.record.id, why=why)

    def _let_go(self, lease: Lease, record: JobRecord) -> None:
        """So that nobody has to wait until it counts as stuck."""
        try:
            self._store.save(lease, replace(record, status=JobStatus.PENDING, reason=None))
        except Exception:  # Then they wait.
            log.warning("switchgear: the job %s counts as running", record.id)

    def _claim(self, job_id: str, also_failed: bool, is_undoing: bool) -> Lease | None:
        worker = self._worker or f"{socket.gethostname()}:{os.getpid()}"
        now = self._clock()
        terms = {"also_failed": also_failed, "is_undoing": is_undoing}
        return self._store.claim(job_id, worker, now, self._stuck_seconds, **terms)

    def _due(self, most: int) -> list[str]:
        return self._store.due(tuple(self._jobs), self._clock(), self._stuck_seconds, most)

    def _decide(self, job_id: str, step: str, state: ApprovalState, by: str) -> bool:
        plan = self.look(job_id).job.plan
        if step not in plan:
            raise LookupError(f"the job {job_id} has no step called {step}")
        worded(by, "who decides", may_be_empty=True)
        return self._store.decide(job_id, plan.index(step), state, by, self._clock()) > 0

    def _job(self, name: str) -> Job:
        if name not in self._jobs:
            raise LookupError(f"there is no job called {name}")
        return self._jobs[name]
