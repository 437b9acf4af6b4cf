"""What a step does to the outside: the intent is kept before, the outcome after."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any

from switchgear import journal
from switchgear.failures.error_labels import said_by
from switchgear.lazy import asyncio
from switchgear.patterns.idempotency import MAX_KEY_LENGTH, idempotency_key_of
from switchgear.refusals import Refused
from switchgear.steps.errors import OURS, EffectRepeated, LeaseLost, Paused
from switchgear.steps.json_values import plain
from switchgear.steps.records import EffectRecord, EffectState
from switchgear.steps.step_writer import Page

SETTLED_SECONDS = 60.0
"""How often a job looks whether a person has settled what another one did."""


class Effect:
    """`with` or `async with`: the body does it, and sends `key` along; our HTTP transports do by
    themselves, if it is of visible ASCII characters. `is_unknown` says that an earlier try, maybe
    another job's, may have got there. Set `outcome` to what is to be kept of it.

    A body that raises leaves it unknown: the other side may have done it. Nothing was done if what
    was raised is :class:`Refused`, or the body says so by :meth:`not_done`.
    """

    def __init__(self, page: Page, row: EffectRecord, *, is_keyed: bool) -> None:
        self.key = row.key
        self.outcome: Any = None
        self.is_unknown = False
        self._page = page
        self._row = row
        self._is_keyed = is_keyed
        self._is_not_done = False
        self._carrying: AbstractContextManager[object] = nullcontext()

    def not_done(self) -> None:
        """It certainly did not happen: a later try begins anew."""
        self._is_not_done = True

    def __enter__(self) -> "Effect":
        self._intend()
        self._carry()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._carrying.__exit__(kind, error, traceback)
        self._conclude(error)

    async def __aenter__(self) -> "Effect":
        await asyncio.to_thread(self._intend)
        self._carry()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._carrying.__exit__(kind, error, traceback)
        await asyncio.to_thread(self._conclude, error)

    def _carry(self) -> None:
        if 0 < len(self.key) <= MAX_KEY_LENGTH and all("!" <= each <= "~" for each in self.key):
            self._carrying = idempotency_key_of(self.key)
        self._carrying.__enter__()

    def _intend(self) -> None:
        page = self._page
        self._row = replace(self._row, at=page.now())
        found = page.intend(self._row, is_keyed=self._is_keyed)
        if found is not None and found.state is EffectState.DONE:
            note_repeated(page, self._row)
            raise EffectRepeated(self.key)
        self.is_unknown = found is not None and found.state is EffectState.UNKNOWN
        if found is not None and self.is_unknown and not self._is_keyed:
            is_own = found.job_id == page.job.id
            where = "" if is_own else f" of the job {found.job_id}"
            raise Paused(
                f"the effect {self.key}{where} may have happened: look, and settle it",
                None if is_own else SETTLED_SECONDS,
            )

    def _conclude(self, error: BaseException | None) -> None:
        if error is None and not self._is_not_done:
            self._keep()
            return
        is_refusal = isinstance(error, Refused) and not isinstance(error, OURS)
        if self._is_not_done or is_refusal:
            self._write(EffectState.NOT_DONE, error)
        elif isinstance(error, Exception) and not isinstance(error, LeaseLost):
            self._write(EffectState.UNKNOWN, error)

    def _keep(self) -> None:
        """It is done, also if its outcome can't be kept."""
        try:
            self.outcome = plain(self.outcome, f"the outcome of {self._row.kind}")
        except TypeError:
            self.outcome = None
            self._write(EffectState.DONE, None)
            raise
        self._write(EffectState.DONE, None)

    def _write(self, state: EffectState, error: BaseException | None) -> None:
        said = None if error is None else said_by(error)
        self._row = replace(self._row, state=state, outcome=self.outcome, error=said)
        self._page.save(self._row)


def note_repeated(page: Page, row: EffectRecord) -> None:
    """A second time was prevented by its key."""
    about = page.job.name
    journal.record("effect_repeated", about, job=page.job.id, step=page.row.name, kind=row.kind)
