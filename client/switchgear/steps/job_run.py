"""A job goes forward: one step after the other, each written down before the next."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from switchgear import cancellation, journal
from switchgear.decorators import is_coroutine_function
from switchgear.failures.error_labels import said_by
from switchgear.lazy import asyncio
from switchgear.refusals import Refused
from switchgear.steps.context import Approve, Context
from switchgear.steps.drivers import Ask, Course
from switchgear.steps.errors import OURS, NotApproved
from switchgear.steps.jobs import Job, Step
from switchgear.steps.json_values import Copies, copied, plain, worded
from switchgear.steps.records import (
    ApprovalState,
    JobRecord,
    Lease,
    Progress,
    Row,
    StepRecord,
    StepStatus,
)
from switchgear.steps.risks import Risk, risk_of
from switchgear.steps.step_writer import Page, kept
from switchgear.steps.store import Store

ENDING = (*OURS, Refused)
"""Errors that end a step at once, whatever third-party decorator is around it."""

_ENDED = object()


class StepFailed(Exception):
    """The step at this position has failed for good; `__cause__` is what it raised."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Running:
    """One worker's run of one job. What it asks for may raise :class:`Refused`, which ends the run
    with the job to be paused."""

    def __init__(
        self,
        job: Job,
        store: Store,
        lease: Lease,
        progress: Progress,
        now: Callable[[], float],
        approve: Approve | None,
        approve_from: Risk,
    ) -> None:
        self.job = job
        self.store = store
        self.lease = lease
        self.record: JobRecord = progress.job
        self.rows = {row.position: row for row in progress.steps}
        self.now = now
        self._approvals = progress.approvals
        self._approve = approve
        self._approve_from = approve_from

    def forward(self) -> Course[None]:
        """All steps that are left. Raises :class:`StepFailed`."""
        for position in range(self.record.current, len(self.job.steps)):
            yield from self._step(position)

    def ask_anew(self) -> Course[None]:
        """A step that was not approved is asked about again, as its job was resumed."""
        row = self.rows.get(self.record.current)
        if row is None or not (row.error or "").startswith(NotApproved.__name__):
            return
        former = [
            replace(each, state=ApprovalState.FORMER)
            for each in self._approvals
            if each.position == row.position and each.state is ApprovalState.DECLINED
        ]
        yield self.ask(self.keep, *former)

    def context(self, position: int, page: Page, **more: Any) -> Context:
        """For the step at `position`, with the outputs of those before."""
        return Context(
            input=copied(self.record.input),
            outputs=self._outputs(position),
            attempt=page.row.attempts,
            page=page,
            approve=self._approve,
            **more,
        )

    def page(self, row: StepRecord) -> Page:
        return Page(self.store, self.lease, self.record, row, self.now)

    def keep(self, *rows: Row) -> None:
        """Write down what is no step's. Raises :class:`LeaseLost` and :class:`NotKept`."""
        kept(self.store.save, self.lease, *rows)

    def ask(self, function: Callable[..., Any], *args: Any) -> Ask:
        return Ask(function, args, self.lease)

    def _step(self, position: int) -> Course[None]:
        cancellation.check()
        step = self.job.steps[position]
        page = self.page(self._row(position, step))
        before = page.row.attempts
        try:
            if step.idempotency_key is not None:
                key = yield self.ask(step.idempotency_key, self.context(position, page))
                worded(key, f"the idempotency key of {step.name}")
                page.row = replace(page.row, key=key)
                found = yield self.ask(page.succeeded, key)
                if found is not None:
                    yield from self._reuse(page, found)
                    return
            yield from self._ask_people(position, step, page)
            output = yield self.ask(self._tried(position, step, page))
            page.row = replace(page.row, has_returned=True)
            made = plain(output, f"the output of {step.name}")
        except Refused:
            if page.row.attempts > before:  # That one was none.
                changes = {"status": StepStatus.PENDING, "attempts": page.row.attempts - 1}
                yield self.ask(lambda: page.write(**changes))
            raise
        except Exception as error:
            yield from self._fail(page, error)
            raise StepFailed(position) from error
        yield from self._succeed(page, made)

    def _ask_people(self, position: int, step: Step, page: Page) -> Course[None]:
        context = self.context(position, page)
        estimate = step.estimate
        if callable(estimate):
            estimate = yield self.ask(estimate, context)
        risk = risk_of(step.tags, estimate)
        needs = step.needs_approval
        if not (risk >= self._approve_from if needs is None else needs):
            return
        about = step.description or step.name
        said = {"risk": risk.name.lower()}

        async def asked() -> bool:
            return await context.arequest_approval(about, step.approval_seconds, **said)

        is_async = self._approve is not None and is_coroutine_function(self._approve)
        plainly = lambda: context.request_approval(about, step.approval_seconds, **said)  # noqa: E731
        if not (yield self.ask(asked if is_async else plainly)):
            raise NotApproved(step.name)

    def _tried(self, position: int, step: Step, page: Page) -> Callable[..., Any]:
        """What runs the step, as often as its retry likes; each try is counted before it begins."""

        def begin() -> Context:
            if page.row.attempts >= step.max_attempts:
                raise RuntimeError(f"the step {step.name} was tried {page.row.attempts} times")
            page.begin()
            return self.context(position, page)

        tried = around(step.run, begin, step.retry)
        return tried if self.job.guard is None else self.job.guard(tried)

    def _succeed(self, page: Page, output: Any) -> Course[None]:
        now = self.now()
        began = page.row.started_at or now
        yield from self._move_on(
            page, status=StepStatus.SUCCEEDED, output=output, error=None, completed_at=now
        )
        self.note(
            "step_succeeded", page.row, attempts=page.row.attempts, seconds=max(now - began, 0.0)
        )

    def _reuse(self, page: Page, found: StepRecord) -> Course[None]:
        yield from self._move_on(
            page,
            status=StepStatus.SUCCEEDED,
            output=found.output,
            is_reused=True,
            completed_at=self.now(),
        )
        self.note("step_reused", page.row)

    def _move_on(self, page: Page, **changes: Any) -> Course[None]:
        record = replace(self.record, current=page.row.position + 1)
        yield self.ask(lambda: page.write(record, **changes))
        self.record = record
        self.rows[page.row.position] = page.row

    def _fail(self, page: Page, error: Exception) -> Course[None]:
        yield self.ask(
            lambda: page.write(
                status=StepStatus.FAILED, error=said_by(error), completed_at=self.now()
            )
        )
        self.rows[page.row.position] = page.row
        self.note("step_failed", page.row, attempts=page.row.attempts, error=type(error).__name__)

    def note(self, name: str, row: StepRecord, **fields: Any) -> None:
        journal.record(name, self.job.name, job=self.record.id, step=row.name, **fields)

    def _row(self, position: int, step: Step) -> StepRecord:
        key = f"{self.record.id}:{position}"
        new = StepRecord(job_id=self.record.id, position=position, name=step.name, key=key)
        return self.rows.get(position, new)

    def _outputs(self, position: int) -> Mapping[str, Any]:
        before = (self.rows[each] for each in range(position) if each in self.rows)
        return Copies({row.name: row.output for row in before})


def around(
    run: Callable[[Context], Any],
    begin: Callable[[], Context],
    retry: Callable[[Callable[..., Any]], Callable[..., Any]] | None,
) -> Callable[..., Any]:
    """A function of the kind of `run`, without arguments."""

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
        return retry(made)  # It knows what is Refused.
    return _put_aside(made, retry)


def _put_aside(
    made: Callable[..., Any], retry: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """`made` within the decorator of somebody else, who would try again what ends our run: to that
    it looks as if all went well."""
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

    def tried() -> Any:
        try:
            return retried()
        finally:
            if ended:
                raise ended[0]

    async def tried_async() -> Any:
        try:
            return await retried()
        finally:
            if ended:
                raise ended[0]

    is_async = is_coroutine_function(made)
    retried = retry(once_async if is_async else once)
    return tried_async if is_async else tried
