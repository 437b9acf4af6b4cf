"""One run of a job by a worker: one step after the other, then the end or a pause.

The result of each step is recorded before the next one begins.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from switchgear import cancellation, journal
from switchgear.decorators import is_coroutine_function
from switchgear.failures.error_labels import describe_error
from switchgear.lazy import asyncio
from switchgear.refusals import CircuitOpen, Refused
from switchgear.steps.context import Approve, Context
from switchgear.steps.drivers import CallRequest, Execution
from switchgear.steps.errors import RUN_ENDING_ERRORS, NotApproved, Paused
from switchgear.steps.jobs import Job, Step
from switchgear.steps.json_values import CopiedOutputs, copy_json, json_value, require_text
from switchgear.steps.records import (
    ApprovalState,
    JobRecord,
    JobStatus,
    Lease,
    Progress,
    Row,
    StepRecord,
    StepStatus,
)
from switchgear.steps.risks import Risk, risk_of
from switchgear.steps.step_writer import StepWriter, call_store
from switchgear.steps.store import Store

ENDING = (*RUN_ENDING_ERRORS, Refused)
"""Errors that end a step at once, even within retry decorators of other libraries."""

_ENDED = object()


class StepFailed(Exception):
    """Raised if the step at `position` has failed for good; `__cause__` is its error."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(eq=False)
class JobRun:
    """One worker's run of one job, from taking the job until its end or pause.

    Its methods may raise :class:`Refused`, after which the job is paused.
    """

    job: Job
    store: Store
    lease: Lease
    progress: Progress
    """The progress at the beginning of this run."""
    now: Callable[[], float]
    approve: Approve | None
    approve_from: Risk

    def __post_init__(self) -> None:
        self.record: JobRecord = self.progress.job
        self.rows = {row.position: row for row in self.progress.steps}

    def run_steps(self) -> Execution[None]:
        """Run the steps that are not completed yet. Raises :class:`StepFailed`."""
        for position in range(self.record.current, len(self.job.steps)):
            yield from self._step(position)

    def reopen_approvals(self) -> Execution[None]:
        """Mark declined approval requests of the current step as replaced (`former`).

        The resumed job then requests the approval again.
        """
        row = self.rows.get(self.record.current)
        if row is None or not (row.error or "").startswith(NotApproved.__name__):
            return
        former = [
            replace(each, state=ApprovalState.FORMER)
            for each in self.progress.approvals
            if each.position == row.position and each.state is ApprovalState.DECLINED
        ]
        yield self.request(self.save, *former)

    def end(self, status: JobStatus, reason: str | None) -> Execution[None]:
        """Record the end of the job, with its final `status` and a `reason`."""
        now = self.now()
        changes: dict[str, Any] = {"status": status, "reason": reason, "completed_at": now}
        yield self.request(self.save, replace(self.record, **changes))
        name = "job_completed" if status is JobStatus.COMPLETED else "job_failed"
        seconds = max(now - (self.record.started_at or now), 0.0)
        journal.record(name, self.job.name, job=self.record.id, seconds=seconds)

    def pause(self, refusal: Refused, refused_seconds: float) -> Execution[None]:
        """Pause the job because a step raised `refusal`.

        The job is due again after the time that the refusal names; if it names none, after
        `refused_seconds`. If an approval request is open, the job is due at its expiry at the
        latest. After a :class:`Paused` without seconds or request, a person has to resume the job.
        """
        now, question = self.now(), None
        seconds: float | None = refused_seconds
        if isinstance(refusal, Paused):
            seconds, question = refusal.seconds, refusal.question
        elif isinstance(refusal, CircuitOpen) and refusal.retry_after:
            seconds = refusal.retry_after
        moments = [] if seconds is None else [now + seconds]
        if question is not None:
            moments.append(question.expires_at)
        record = replace(
            self.record,
            status=JobStatus.PAUSED,
            reason=describe_error(refusal),
            resume_at=min(moments, default=None),
        )
        rows: tuple[Row, ...] = (record,) if question is None else (record, question)
        yield self.request(self.save, *rows)
        why = type(refusal).__name__
        journal.record("job_paused", self.job.name, job=self.record.id, why=why)

    def context(self, position: int, writer: StepWriter, **more: Any) -> Context:
        """Return the context for the step at `position`; `more` are further fields of it."""
        before = (self.rows[each] for each in range(position) if each in self.rows)
        return Context(
            input=copy_json(self.record.input),
            outputs=CopiedOutputs({row.name: row.output for row in before}),
            attempt=writer.row.attempts,
            writer=writer,
            approve=self.approve,
            **more,
        )

    def writer(self, row: StepRecord) -> StepWriter:
        return StepWriter(self.store, self.lease, self.record, row, self.now)

    def save(self, *rows: Row) -> None:
        """Write records of the job. Raises :class:`LeaseLost` and :class:`NotKept`.

        Use a :class:`StepWriter` for the record of a step.
        """
        call_store(self.store.save, self.lease, *rows)

    def request(self, function: Callable[..., Any], *args: Any) -> CallRequest:
        return CallRequest(function, args, self.lease)

    def _step(self, position: int) -> Execution[None]:
        cancellation.check()
        step = self.job.steps[position]
        key = f"{self.record.id}:{position}"
        new = StepRecord(job_id=self.record.id, position=position, name=step.name, key=key)
        writer = self.writer(self.rows.get(position, new))
        before = writer.row.attempts
        try:
            if step.idempotency_key is not None:
                key = yield self.request(step.idempotency_key, self.context(position, writer))
                require_text(key, f"the idempotency key of {step.name}")
                writer.row = replace(writer.row, key=key)
                found = yield self.request(
                    call_store, self.store.succeeded, self.job.name, step.name, key
                )
                if found is not None:
                    yield from self._finish_step(
                        writer, output=found.output, is_reused=True, completed_at=self.now()
                    )
                    writer.note("step_reused")
                    return
            yield from self._request_approval(position, step, writer)
            output = yield self.request(self._make_attempt(position, step, writer))
            writer.row = replace(writer.row, has_returned=True)
            made = json_value(output, f"the output of {step.name}")
        except Refused:
            if writer.row.attempts > before:  # A refused attempt does not count.
                changes = {"status": StepStatus.PENDING, "attempts": writer.row.attempts - 1}
                yield self.request(lambda: writer.write(**changes))
            raise
        except Exception as error:
            yield from self._record_failure(writer, error)
            raise StepFailed(position) from error
        now = self.now()
        seconds = max(now - (writer.row.started_at or now), 0.0)
        yield from self._finish_step(writer, output=made, error=None, completed_at=now)
        writer.note("step_succeeded", attempts=writer.row.attempts, seconds=seconds)

    def _request_approval(self, position: int, step: Step, writer: StepWriter) -> Execution[None]:
        context = self.context(position, writer)
        estimate = step.estimate
        if callable(estimate):
            estimate = yield self.request(estimate, context)
        risk = risk_of(step.tags, estimate)
        needs = step.needs_approval
        if not (risk >= self.approve_from if needs is None else needs):
            return
        about = step.description or step.name
        level = risk.name.lower()

        async def arequest() -> bool:
            return await context.arequest_approval(about, step.approval_seconds, risk=level)

        is_async = self.approve is not None and is_coroutine_function(self.approve)
        request_sync = lambda: context.request_approval(about, step.approval_seconds, risk=level)  # noqa: E731
        if not (yield self.request(arequest if is_async else request_sync)):
            raise NotApproved(step.name)

    def _make_attempt(self, position: int, step: Step, writer: StepWriter) -> Callable[..., Any]:
        """Return a function that makes and counts an attempt of the step, with its retry around."""

        def begin() -> Context:
            if writer.row.attempts >= step.max_attempts:
                raise RuntimeError(f"the step {step.name} was tried {writer.row.attempts} times")
            writer.begin()
            return self.context(position, writer)

        attempt = wrap_attempt(step.run, begin, step.retry)
        return attempt if self.job.guard is None else self.job.guard(attempt)

    def _finish_step(self, writer: StepWriter, **changes: Any) -> Execution[None]:
        record = replace(self.record, current=writer.row.position + 1)
        yield self.request(lambda: writer.write(record, status=StepStatus.SUCCEEDED, **changes))
        self.record = record
        self.rows[writer.row.position] = writer.row

    def _record_failure(self, writer: StepWriter, error: Exception) -> Execution[None]:
        yield self.request(
            lambda: writer.write(
                status=StepStatus.FAILED, error=describe_error(error), completed_at=self.now()
            )
        )
        self.rows[writer.row.position] = writer.row
        writer.note("step_failed", attempts=writer.row.attempts, error=type(error).__name__)


def wrap_attempt(
    run: Callable[[Context], Any],
    begin: Callable[[], Context],
    retry: Callable[[Callable[..., Any]], Callable[..., Any]] | None,
) -> Callable[..., Any]:
    """Return a function without arguments that runs a step or compensation, with `retry` around it.

    Each attempt calls `begin`, which records its start and returns the context, and passes the
    context to `run`.
    """

    def once() -> Any:
        cancellation.check()
        return run(begin())

    async def once_async() -> Any:
        cancellation.check()
        return await run(await asyncio.to_thread(begin))

    made = once_async if is_coroutine_function(run) else once
    if retry is None:
        return made
    if type(retry).__module__.partition(".")[0] == "switchgear":
        return retry(made)  # Our decorators do not retry `Refused`.
    return _hide_from_decorator(made, retry)


def _hide_from_decorator(
    made: Callable[..., Any], retry: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """Return the attempt function `made` with the retry decorator of another library around it.

    The decorator must not retry the errors in `ENDING`. They are hidden from it, and raised when
    the decorated function has returned.
    """
    ended: list[BaseException] = []

    def once() -> Any:
        if ended:
            return _ENDED
        try:
            return made()
        except ENDING as error:
            ended.append(error)
            return _ENDED

    async def once_async() -> Any:
        if ended:
            return _ENDED
        try:
            return await made()
        except ENDING as error:
            ended.append(error)
            return _ENDED

    def run() -> Any:
        try:
            return decorated()
        finally:
            if ended:
                raise ended[0]

    async def run_async() -> Any:
        try:
            return await decorated()
        finally:
            if ended:
                raise ended[0]

    is_async = is_coroutine_function(made)
    decorated = retry(once_async if is_async else once)
    return run_async if is_async else run
