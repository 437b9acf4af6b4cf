"""External effects of a step: the intent is recorded before the effect, the outcome after it."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from switchgear.failures.error_labels import describe_error
from switchgear.lazy import asyncio
from switchgear.patterns.idempotency import MAX_KEY_LENGTH, idempotency_key_of
from switchgear.refusals import Refused
from switchgear.steps.errors import RUN_ENDING_ERRORS, EffectRepeated, LeaseLost, Paused
from switchgear.steps.json_values import json_value
from switchgear.steps.records import EffectRecord, EffectState
from switchgear.steps.step_writer import StepWriter

SETTLE_POLL_SECONDS = 60.0
"""Interval at which a waiting job checks if a person has settled the unknown effect of another."""


class Effect:
    """A context manager, sync or async, whose body performs an external effect of a step.

    The body sends the idempotency `key` along; the HTTP transports of this library do so
    automatically, if it is visible ASCII. `is_unknown` is True if an earlier attempt, perhaps of
    another job, may have performed the effect. Set `outcome` to the result to record.

    If the body raises, the state of the effect is unknown, since the target may have performed it.
    But if the error is :class:`Refused`, or the body called :meth:`not_done`, the effect counts as
    not done.
    """

    def __init__(self, writer: StepWriter, row: EffectRecord, *, is_keyed: bool) -> None:
        self.key = row.key
        self.outcome: Any = None
        self.is_unknown = False
        self._writer = writer
        self._record = row
        self._is_keyed = is_keyed
        self._is_not_done = False
        self._carrying: AbstractContextManager[object] = nullcontext()

    def not_done(self) -> None:
        """Declare that the effect certainly did not happen; a later attempt may perform it."""
        self._is_not_done = True

    def __enter__(self) -> "Effect":
        self._record_intent()
        self._send_key()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._carrying.__exit__(kind, error, traceback)
        self._record_outcome(error)

    async def __aenter__(self) -> "Effect":
        await asyncio.to_thread(self._record_intent)
        self._send_key()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._carrying.__exit__(kind, error, traceback)
        await asyncio.to_thread(self._record_outcome, error)

    def _send_key(self) -> None:
        if 0 < len(self.key) <= MAX_KEY_LENGTH and all("!" <= each <= "~" for each in self.key):
            self._carrying = idempotency_key_of(self.key)
        self._carrying.__enter__()

    def _record_intent(self) -> None:
        writer = self._writer
        self._record = replace(self._record, at=writer.now())
        found = writer.intend(self._record, is_keyed=self._is_keyed)
        if found is not None and found.state is EffectState.DONE:
            writer.note("effect_repeated", kind=self._record.kind)
            raise EffectRepeated(self.key)
        self.is_unknown = found is not None and found.state is EffectState.UNKNOWN
        if found is not None and self.is_unknown and not self._is_keyed:
            is_own = found.job_id == writer.job.id
            where = "" if is_own else f" of the job {found.job_id}"
            raise Paused(
                f"the effect {self.key}{where} may have happened: check, then settle it",
                None if is_own else SETTLE_POLL_SECONDS,
            )

    def _record_outcome(self, error: BaseException | None) -> None:
        if error is None and not self._is_not_done:
            try:
                self.outcome = json_value(self.outcome, f"the outcome of {self._record.kind}")
            except TypeError:
                self.outcome = None
                self._write(EffectState.DONE, None)
                raise
            self._write(EffectState.DONE, None)
            return
        is_refusal = isinstance(error, Refused) and not isinstance(error, RUN_ENDING_ERRORS)
        if self._is_not_done or is_refusal:
            self._write(EffectState.NOT_DONE, error)
        elif isinstance(error, Exception) and not isinstance(error, LeaseLost):
            self._write(EffectState.UNKNOWN, error)

    def _write(self, state: EffectState, error: BaseException | None) -> None:
        text = None if error is None else describe_error(error)
        self._record = replace(self._record, state=state, outcome=self.outcome, error=text)
        self._writer.save(self._record)
