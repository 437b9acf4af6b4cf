"""What a step is given: what was done before, and how to write down what it does."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from switchgear import journal
from switchgear.failures.error_labels import said_by
from switchgear.lazy import asyncio
from switchgear.steps.drivers import call, call_async
from switchgear.steps.effects import Effect, note_repeated
from switchgear.steps.errors import LeaseLost, Paused
from switchgear.steps.json_values import copied, plain, worded
from switchgear.steps.records import ApprovalRecord, ApprovalState, EffectRecord, EffectState
from switchgear.steps.step_writer import Page

LARGE_BYTES = 10_240
"""A checkpoint beyond this should hold references instead of what they lead to."""

ASKED_AGAIN_SECONDS = 60.0
"""When whoever asks people is called again after it has failed."""

Approve = Callable[[ApprovalRecord], bool | Awaitable[bool | None] | None]
"""Asks people: True or False if they have decided, None if they will, by `Runner.approve`. A
function or a coroutine function; it may be asked again about the same. One that raises has said
nothing: it is logged, and asked again."""

log = logging.getLogger("switchgear")


@dataclass(frozen=True, eq=False)
class Context:
    """Of one try of one step. `input` is the job's, `outputs` those of the steps before by their
    names, `output` the step's own, to compensate (None if it was no JSON); all are copies.
    `attempt` counts from 1, over all workers; `previous_checkpoint` is what an earlier one saved
    last, or None.

    In a coroutine use the methods that begin with an `a`: the others wait for the disk. Each raises
    :class:`LeaseLost` once another worker has taken over, which must not be caught.
    """

    input: Any = field(repr=False)
    outputs: Mapping[str, Any] = field(repr=False)
    attempt: int
    page: Page = field(repr=False)
    approve: Approve | None = field(default=None, repr=False)
    output: Any = field(default=None, repr=False)
    is_compensating: bool = False

    @property
    def job_id(self) -> str:
        return self.page.job.id

    @property
    def tenant(self) -> str:
        return self.page.job.tenant

    @property
    def user(self) -> str:
        return self.page.job.user

    @property
    def step(self) -> str:
        return self.page.row.name

    @property
    def key(self) -> str:
        """The step's own idempotency key."""
        return self.page.row.key

    @property
    def previous_checkpoint(self) -> Any:
        return copied(self.page.row.checkpoint)

    def check(self) -> None:
        """Raise :class:`LeaseLost` if the job is another worker's: for a step that goes on long
        without writing. It looks no further than what this worker's last sign of life found."""
        if self.page.lease.is_lost:
            raise LeaseLost(self.job_id)

    def pause(self, reason: str, seconds: float | None = None) -> None:
        """Leave off here: raises :class:`Paused`. The step begins again after `seconds`, or when a
        person runs the job."""
        raise Paused(reason, seconds)

    def save_checkpoint(self, checkpoint: Any) -> None:
        """Keep how far this step is, as JSON: every 50 to 200 items, or 30 to 60 seconds."""
        kept = plain(checkpoint, f"the checkpoint of {self.step}")
        size = len(json.dumps(kept))
        self.page.write(checkpoint=kept)
        name = "checkpoint_large" if size > LARGE_BYTES else "checkpoint_saved"
        journal.record(name, self.page.job.name, job=self.job_id, step=self.step, bytes=size)

    async def asave_checkpoint(self, checkpoint: Any) -> None:
        await asyncio.to_thread(self.save_checkpoint, checkpoint)

    def was_recorded(self, kind: str, target: str, key: str) -> bool:
        """Whether this effect is done, by this job or another of its name; of a compensation, by
        this job's."""
        return self._done(self._intent(kind, target, key)) is not None

    def effects(self) -> tuple[EffectRecord, ...]:
        """What this step did to the outside, or may have done."""
        found = self.page.look()
        return () if found is None else found.effects_of(self.page.row.position)

    def effect(
        self, kind: str, target: str, key: str, details: Any = None, *, is_keyed: bool = True
    ) -> Effect:
        """What is done in its body is an effect on `target`: the one of this `kind`, `target` and
        `key`, in all jobs of this name; of a compensation, in this job. Raises
        :class:`EffectRepeated` on entering if it is done already. If an earlier try may have done
        it, it is tried again with the same key, which the target knows; if that knows no keys
        (`is_keyed`) the job pauses, until a person has looked and settled it."""
        return Effect(self.page, self._intent(kind, target, key, details), is_keyed=is_keyed)

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
        """What `act` gives as JSON, or gave when it was done: see :meth:`effect`."""
        done = self._done(self._intent(kind, target, key))
        if done is not None:
            note_repeated(self.page, done)
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
        """:meth:`once`, with a coroutine function."""
        done = await asyncio.to_thread(self._done, self._intent(kind, target, key))
        if done is not None:
            note_repeated(self.page, done)
            return done.outcome
        async with self.effect(kind, target, key, details, is_keyed=is_keyed) as effect:
            effect.outcome = await act()
        return effect.outcome

    def request_approval(
        self, description: str, timeout: float = 7200.0, *, risk: str = ""
    ) -> bool:
        """Whether a person says yes to this within `timeout` seconds. While nobody has said
        anything the job pauses, and the step begins again."""
        question, answer = self._asked(description, timeout, risk)
        if answer is None and self.approve is not None:
            try:
                said = call(self.approve, question)
            except Exception as error:
                self._unheard(question, error)
            answer = self._heard(question, said)
        return self._answered(question, answer)

    async def arequest_approval(
        self, description: str, timeout: float = 7200.0, *, risk: str = ""
    ) -> bool:
        question, answer = await asyncio.to_thread(self._asked, description, timeout, risk)
        if answer is None and self.approve is not None:
            try:
                said = await call_async(self.approve, question)
            except Exception as error:
                self._unheard(question, error)
            answer = await asyncio.to_thread(self._heard, question, said)
        return self._answered(question, answer)

    def _done(self, wanted: EffectRecord) -> EffectRecord | None:
        found = self.page.effect(wanted)
        return found if found is not None and found.state is EffectState.DONE else None

    def _intent(self, kind: str, target: str, key: str, details: Any = None) -> EffectRecord:
        return EffectRecord(
            job_id=self.job_id,
            position=self.page.row.position,
            kind=worded(kind, "the kind of an effect"),
            target=worded(target, "the target of an effect"),
            key=worded(key, "the key of an effect"),
            details=plain(details, f"the details of {kind}"),
            is_compensation=self.is_compensating,
            at=self.page.now(),
        )

    def _asked(
        self, description: str, timeout: float, risk: str
    ) -> tuple[ApprovalRecord, bool | None]:
        """The question as it stands, and its answer so far; put down if it is new."""
        worded(description, "what people are asked")
        found = self.page.look()
        position, now = self.page.row.position, self.page.now()
        for each in found.approvals if found else ():
            if each.state is ApprovalState.FORMER:
                continue
            if (each.position, each.description) == (position, description):
                if each.state is ApprovalState.OPEN and each.expires_at <= now:
                    return each, self._heard(each, False)
                is_open = each.state is ApprovalState.OPEN
                return each, None if is_open else each.state is ApprovalState.GIVEN
        question = ApprovalRecord(
            job_id=self.job_id,
            position=position,
            description=description,
            risk=risk,
            expires_at=now + timeout,
        )
        self.page.save(question)
        self._note("approval_requested", risk=risk)
        return question, None

    def _heard(self, question: ApprovalRecord, said: bool | None) -> bool | None:
        if said is not None:
            state = ApprovalState.GIVEN if said else ApprovalState.DECLINED
            self.page.save(replace(question, state=state, decided_at=self.page.now()))
            self._note("approval_given" if said else "approval_declined")
        return said

    def _unheard(self, question: ApprovalRecord, error: Exception) -> NoReturn:
        """Whoever asks people could not: the question stays, and they are asked again soon."""
        if isinstance(error, LeaseLost):
            raise error
        said = said_by(error)
        log.warning("switchgear: approval of the step %s was not asked for: %s", self.step, said)
        waiting = Paused(f"approval of the step {self.step}: {said}", ASKED_AGAIN_SECONDS)
        waiting.question = question
        raise waiting from error

    def _answered(self, question: ApprovalRecord, answer: bool | None) -> bool:
        if answer is None:
            waiting = Paused(f"approval of the step {self.step}")
            waiting.question = question
            raise waiting
        return answer

    def _note(self, name: str, **fields: Any) -> None:
        journal.record(name, self.page.job.name, job=self.job_id, step=self.step, **fields)
