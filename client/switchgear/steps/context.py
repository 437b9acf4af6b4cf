"""The context of a step: earlier results, checkpoints, effects and approvals."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from switchgear.failures.error_labels import describe_error
from switchgear.journal import log
from switchgear.lazy import asyncio
from switchgear.steps.drivers import call, call_async
from switchgear.steps.effects import Effect
from switchgear.steps.errors import LeaseLost, Paused
from switchgear.steps.json_values import copy_json, json_value, require_text
from switchgear.steps.records import ApprovalRecord, ApprovalState, EffectRecord, EffectState
from switchgear.steps.step_writer import StepWriter, call_store

LARGE_CHECKPOINT_BYTES = 10_240
"""Size above which a checkpoint is reported; it should contain references instead."""

APPROVAL_RETRY_SECONDS = 60.0
"""Pause after a failed `approve` hook before it is called again."""

Approve = Callable[[ApprovalRecord], bool | Awaitable[bool | None] | None]
"""Hook that requests a decision. It returns True or False, or None if a person decides later.

A later decision is made by `Runner.approve` or `Runner.decline`. The hook is a function or a
coroutine function. It may be called several times for one request, for example after it raised an
error, which is logged.
"""


@dataclass(frozen=True, eq=False)
class Context:
    """The context that one attempt of one step is called with.

    `input` is the input of the job, `outputs` are the outputs of earlier steps by name, `output`
    is, in a compensation, the output of the compensated step (None if it was not JSON). All three
    are copies. `attempt` is the number of the attempt, counted from 1 over all workers.

    In a coroutine, use the methods that begin with `a`; the others block on disk writes. The
    methods raise :class:`LeaseLost` once another worker has taken over the job; do not catch it.
    """

    input: Any = field(repr=False)
    outputs: Mapping[str, Any] = field(repr=False)
    attempt: int
    writer: StepWriter = field(repr=False)
    approve: Approve | None = field(default=None, repr=False)
    output: Any = field(default=None, repr=False)
    is_compensating: bool = False

    @property
    def job_id(self) -> str:
        return self.writer.job.id

    @property
    def tenant(self) -> str:
        return self.writer.job.tenant

    @property
    def user(self) -> str:
        return self.writer.job.user

    @property
    def step(self) -> str:
        return self.writer.row.name

    @property
    def key(self) -> str:
        """The idempotency key of the step."""
        return self.writer.row.key

    @property
    def previous_checkpoint(self) -> Any:
        return copy_json(self.writer.row.checkpoint)

    def check(self) -> None:
        """Raise :class:`LeaseLost` if another worker has taken over the job.

        Call this method in steps that run long without writing. The method only reads the result of
        the last heartbeat, without I/O.
        """
        if self.writer.lease.is_lost:
            raise LeaseLost(self.job_id)

    def pause(self, reason: str, seconds: float | None = None) -> None:
        """Pause the job by raising :class:`Paused`.

        The step starts again after `seconds`, or when a person resumes the job.
        """
        raise Paused(reason, seconds)

    def save_checkpoint(self, checkpoint: Any) -> None:
        """Save the progress of this step as JSON, from which a later attempt can continue.

        For example, save it every 100 items or 30 seconds.
        """
        value = json_value(checkpoint, f"the checkpoint of {self.step}")
        size = len(json.dumps(value))
        self.writer.write(checkpoint=value)
        name = "checkpoint_large" if size > LARGE_CHECKPOINT_BYTES else "checkpoint_saved"
        self.writer.note(name, bytes=size)

    async def asave_checkpoint(self, checkpoint: Any) -> None:
        await asyncio.to_thread(self.save_checkpoint, checkpoint)

    def was_recorded(self, kind: str, target: str, key: str) -> bool:
        """Return True if this effect is recorded as done, by a step of any job of this name.

        In a compensation, only its own job counts.
        """
        return self._find_done(self._intent(kind, target, key)) is not None

    def effects(self) -> tuple[EffectRecord, ...]:
        """Return the records of all effects that this step had, or may have had."""
        found = self.writer.look()
        return () if found is None else found.effects_of(self.writer.row.position)

    def effect(
        self, kind: str, target: str, key: str, details: Any = None, *, is_keyed: bool = True
    ) -> Effect:
        """Return a context manager whose body performs an effect on `target`.

        `kind`, `target` and `key` identify the effect among all jobs of this name, or, in a
        compensation, within this job. Raises :class:`EffectRepeated` on entering if the effect is
        done already.

        If an earlier attempt may have performed the effect, it is repeated with the same key, by
        which the target detects the repetition. If the target supports no keys (`is_keyed=False`),
        the job pauses instead until a person has settled the effect.
        """
        return Effect(self.writer, self._intent(kind, target, key, details), is_keyed=is_keyed)

    def once(
        self,
        kind: str,
        target: str,
        key: str,
        act: Callable[[], Any],
        details: Any = None,
        *,
        is_keyed: bool = True,
    ) -> Any:
        """Perform an effect on `target` by calling `act`, and return its result as JSON.

        If the effect was done before, return the recorded result instead. See :meth:`effect`.
        """
        done = self._find_done(self._intent(kind, target, key))
        if done is not None:
            self.writer.note("effect_repeated", kind=done.kind)
            return done.outcome
        with self.effect(kind, target, key, details, is_keyed=is_keyed) as effect:
            effect.outcome = act()
        return effect.outcome

    async def aonce(
        self,
        kind: str,
        target: str,
        key: str,
        act: Callable[[], Awaitable[Any]],
        details: Any = None,
        *,
        is_keyed: bool = True,
    ) -> Any:
        """Like :meth:`once`, where `act` is a coroutine function."""
        done = await asyncio.to_thread(self._find_done, self._intent(kind, target, key))
        if done is not None:
            self.writer.note("effect_repeated", kind=done.kind)
            return done.outcome
        async with self.effect(kind, target, key, details, is_keyed=is_keyed) as effect:
            effect.outcome = await act()
        return effect.outcome

    def request_approval(
        self, description: str, timeout: float = 7200.0, *, risk: str = ""
    ) -> bool:
        """Request a person's approval; return True if it is given within `timeout` seconds.

        The job is paused until the decision; then the step starts again and gets the answer here.
        """
        question, answer = self._open_question(description, timeout, risk)
        if answer is None and self.approve is not None:
            try:
                decision = call(self.approve, question)
            except Exception as error:
                self._postpone_question(question, error)
            answer = self._record_answer(question, decision)
        return self._answer_or_pause(question, answer)

    async def arequest_approval(
        self, description: str, timeout: float = 7200.0, *, risk: str = ""
    ) -> bool:
        question, answer = await asyncio.to_thread(self._open_question, description, timeout, risk)
        if answer is None and self.approve is not None:
            try:
                decision = await call_async(self.approve, question)
            except Exception as error:
                self._postpone_question(question, error)
            answer = await asyncio.to_thread(self._record_answer, question, decision)
        return self._answer_or_pause(question, answer)

    def _find_done(self, wanted: EffectRecord) -> EffectRecord | None:
        found = call_store(self.writer.store.effect, self.writer.job.name, wanted)
        return found if found is not None and found.state is EffectState.DONE else None

    def _intent(self, kind: str, target: str, key: str, details: Any = None) -> EffectRecord:
        return EffectRecord(
            job_id=self.job_id,
            position=self.writer.row.position,
            kind=require_text(kind, "the kind of an effect"),
            target=require_text(target, "the target of an effect"),
            key=require_text(key, "the key of an effect"),
            details=json_value(details, f"the details of {kind}"),
            is_compensation=self.is_compensating,
            at=self.writer.now(),
        )

    def _open_question(
        self, description: str, timeout: float, risk: str
    ) -> tuple[ApprovalRecord, bool | None]:
        """Return the approval request described by `description`, and the person's decision on it.

        The request is created if it is missing. The decision is None while the request is open.
        """
        require_text(description, "the approval question")
        found = self.writer.look()
        position, now = self.writer.row.position, self.writer.now()
        for each in found.approvals if found else ():
            if each.state is ApprovalState.FORMER:
                continue
            if (each.position, each.description) == (position, description):
                if each.state is ApprovalState.OPEN and each.expires_at <= now:
                    return each, self._record_answer(each, False)
                is_open = each.state is ApprovalState.OPEN
                return each, None if is_open else each.state is ApprovalState.GIVEN
        question = ApprovalRecord(
            job_id=self.job_id,
            position=position,
            description=description,
            risk=risk,
            expires_at=now + timeout,
        )
        self.writer.save(question)
        self.writer.note("approval_requested", risk=risk)
        return question, None

    def _record_answer(self, question: ApprovalRecord, decision: bool | None) -> bool | None:
        if decision is not None:
            state = ApprovalState.GIVEN if decision else ApprovalState.DECLINED
            self.writer.save(replace(question, state=state, decided_at=self.writer.now()))
            self.writer.note("approval_given" if decision else "approval_declined")
        return decision

    def _postpone_question(self, question: ApprovalRecord, error: Exception) -> NoReturn:
        """Pause the job after the hook that notifies people of an approval request failed.

        The request stays open, and the hook is called again soon.
        """
        if isinstance(error, LeaseLost):
            raise error
        text = describe_error(error)
        log.warning("switchgear: could not request approval of the step %s: %s", self.step, text)
        waiting = Paused(f"approval of the step {self.step}: {text}", APPROVAL_RETRY_SECONDS)
        waiting.question = question
        raise waiting from error

    def _answer_or_pause(self, question: ApprovalRecord, answer: bool | None) -> bool:
        if answer is None:
            waiting = Paused(f"approval of the step {self.step}")
            waiting.question = question
            raise waiting
        return answer
