"""Runs jobs: each step once, from where the last worker left off."""

import asyncio
import contextlib
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from switchgear import journal
from switchgear.failing.classes import FailureClass, classify
from switchgear.failing.responses import respond
from switchgear.failing.words import said_by
from switchgear.refusals import CircuitOpen, Refused
from switchgear.steps.calling import Ask, Course, drive, drive_async
from switchgear.steps.context import Approve
from switchgear.steps.errors import JobTaken, LeaseLost, NotApproved, Paused, PlanChanged
from switchgear.steps.heart import Heart
from switchgear.steps.jobs import Job
from switchgear.steps.plain import plain
from switchgear.steps.records import (
    ApprovalState,
    EffectState,
    JobRecord,
    JobStatus,
    Lease,
    Progress,
    Row,
)
from switchgear.steps.risks import Risk
from switchgear.steps.running import Running, StepFailed
from switchgear.steps.store import Store
from switchgear.steps.undoing import backward

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
        it stays as it is. Raises :class:`TypeError` for an input that is no JSON, and
        :class:`LookupError` for a name that is not known here."""
        record = JobRecord(
            id=job_id or str(uuid.uuid4()),
            name=name,
            plan=self._job(name).plan,
            input=plain(input, "the input of a job"),
            tenant=tenant,
            user=user,
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
        """:meth:`run`, also of a job that has failed and was not compensated: at that step."""
        return drive(self._course(job_id, also_failed=True))

    async def aresume(self, job_id: str) -> JobRecord:
        return await drive_async(self._course(job_id, also_failed=True))

    def compensate(self, job_id: str) -> JobRecord:
        """Undo what a job has done that has failed and was held, or is paused."""
        return drive(self._course(job_id, also_failed=True, is_undoing=True))

    async def acompensate(self, job_id: str) -> JobRecord:
        return await drive_async(self._course(job_id, also_failed=True, is_undoing=True))

    def run_due(self, most: int = 20) -> list[JobRecord]:
        """Run what is due, one after the other: new, stuck, and paused ones whose time has come.
        Call it every few seconds. A job that can't be run is logged."""
        done = []
        for job_id in self._due(most):
            with _supervised(job_id):
                done.append(self.run(job_id))
        return done

    async def arun_due(self, most: int = 20) -> list[JobRecord]:
        done = []
        for job_id in await asyncio.to_thread(self._due, most):
            with _supervised(job_id):
                done.append(await self.arun(job_id))
        return done

    def look(self, job_id: str) -> Progress:
        """All that is known of it. Raises :class:`LookupError`."""
        found = self._store.look(job_id)
        if found is None:
            raise LookupError(f"there is no job {job_id}")
        return found

    def approve(self, job_id: str, step: str, *, by: str = "") -> bool:
        """A person says yes to what is asked about this step; False if nothing is, any more."""
        return self._decide(job_id, step, ApprovalState.GIVEN, by)

    def decline(self, job_id: str, step: str, *, by: str = "") -> bool:
        """A person says no to it: the step fails."""
        return self._decide(job_id, step, ApprovalState.DECLINED, by)

    def settle(self, job_id: str, key: str, *, is_done: bool) -> bool:
        """A person has looked whether the unknown effect `key` happened; False if it is known."""
        state = EffectState.DONE if is_done else EffectState.NOT_DONE
        return self._store.settle(job_id, key, state)

    def _course(
        self, job_id: str, *, also_failed: bool = False, is_undoing: bool = False
    ) -> Course[JobRecord]:
        before: Progress = yield Ask(self.look, (job_id,))
        job = self._job(before.job.name)
        if before.job.plan != job.plan:
            raise PlanChanged(job_id, job.name)
        lease: Lease | None = yield Ask(self._claim, (job_id, also_failed))
        if lease is None:
            found: Progress = yield Ask(self.look, (job_id,))
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
                journal.note("job_stuck", job.name, job=before.job.id, silent_seconds=silent)
            progress: Progress = yield Ask(self.look, (lease.job_id,))
            running = Running(
                job, self._store, lease, progress, self._clock, self._approve, self._approve_from
            )
            yield from self._through(running, is_undoing)
        except LeaseLost:
            if not lease.is_lost:
                lease.is_lost = True
                journal.note("job_lost", job.name, job=lease.job_id)
            raise
        except Refused as refusal:
            if running is None:
                raise
            yield from self._pause(running, refusal)
        except BaseException:
            self._let_go(lease, running.record if running else before.job)
            raise

    def _through(self, running: Running, is_undoing: bool) -> Course[None]:
        reason: str | None = running.record.reason
        if running.record.is_compensating or is_undoing:
            yield from backward(running, running.record.current)
            reason = "compensated"
        else:
            try:
                yield from running.forward()
            except StepFailed as failed:
                error = failed.__cause__ or failed
                reason = f"{running.job.steps[failed.position].name}: {said_by(error)}"
                if not isinstance(error, NotApproved):
                    respond(error, running.job.name)
                is_held = classify(error) is FailureClass.CATASTROPHIC  # People decide.
                if running.job.on_failure == "compensate" and not is_held:
                    yield from backward(running, failed.position)
            else:
                yield from self._end(running, JobStatus.COMPLETED, None)
                return
        yield from self._end(running, JobStatus.FAILED, reason)

    def _end(self, running: Running, status: JobStatus, reason: str | None) -> Course[None]:
        now = self._clock()
        changes: dict[str, Any] = {"status": status, "reason": reason, "completed_at": now}
        yield running.ask(running.keep, replace(running.record, **changes))
        name = "job_completed" if status is JobStatus.COMPLETED else "job_failed"
        seconds = max(now - (running.record.started_at or now), 0.0)
        journal.note(name, running.job.name, job=running.record.id, seconds=seconds)

    def _pause(self, running: Running, refusal: Refused) -> Course[None]:
        question = refusal.question if isinstance(refusal, Paused) else None
        seconds: float | None = self._refused_seconds
        if isinstance(refusal, Paused):
            seconds = refusal.seconds
        elif isinstance(refusal, CircuitOpen) and refusal.retry_after:
            seconds = refusal.retry_after
        resume_at = None if seconds is None else self._clock() + seconds
        paused = replace(
            running.record,
            status=JobStatus.PAUSED,
            reason=said_by(refusal),
            resume_at=question.expires_at if question else resume_at,
        )
        rows: tuple[Row, ...] = (paused,) if question is None else (paused, question)
        yield running.ask(running.keep, *rows)
        why = type(refusal).__name__
        journal.note("job_paused", running.job.name, job=paused.id, why=why)

    def _let_go(self, lease: Lease, record: JobRecord) -> None:
        """So that nobody has to wait until it counts as stuck."""
        try:
            self._store.save(lease, replace(record, status=JobStatus.PENDING, reason=None))
        except Exception:  # Then they wait.
            log.warning("switchgear: the job %s counts as running", record.id)

    def _claim(self, job_id: str, also_failed: bool) -> Lease | None:
        worker = self._worker or f"{socket.gethostname()}:{os.getpid()}"
        now = self._clock()
        return self._store.claim(job_id, worker, now, self._stuck_seconds, also_failed=also_failed)

    def _due(self, most: int) -> list[str]:
        return self._store.due(tuple(self._jobs), self._clock(), self._stuck_seconds, most)

    def _decide(self, job_id: str, step: str, state: ApprovalState, by: str) -> bool:
        position = self.look(job_id).job.plan.index(step)
        return self._store.decide(job_id, position, state, by, self._clock()) > 0

    def _job(self, name: str) -> Job:
        if name not in self._jobs:
            raise LookupError(f"there is no job called {name}")
        return self._jobs[name]


@contextlib.contextmanager
def _supervised(job_id: str) -> Iterator[None]:
    """One job's trouble is not the others'."""
    try:
        yield
    except (JobTaken, LeaseLost):
        pass  # Another worker was quicker.
    except Exception as error:
        log.error("switchgear: the job %s was not run: %s", job_id, said_by(error))
