"""The row of the step at hand, and the way to write it down."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from switchgear.failures.error_labels import said_by
from switchgear.refusals import Refused
from switchgear.steps.errors import KeyTaken, LeaseLost, NotKept
from switchgear.steps.records import (
    EffectRecord,
    JobRecord,
    Lease,
    Progress,
    Row,
    StepRecord,
    StepStatus,
)
from switchgear.steps.store import Store

T = TypeVar("T")


class Page:
    """Of one step of one job under one lease; `row` is as it was last written."""

    def __init__(
        self, store: Store, lease: Lease, job: JobRecord, row: StepRecord, now: Callable[[], float]
    ) -> None:
        self._store = store
        self.lease = lease
        self.job = job
        self.row = row
        self.now = now
        self._lock = threading.RLock()

    def write(self, *rows: Row, **changes: Any) -> None:
        """The step with `changes`, and other rows with it. Raises :class:`LeaseLost` and
        :class:`NotKept`."""
        with self._lock:  # A step may have threads.
            row = replace(self.row, **changes)
            self.save(row, *rows)
            self.row = row

    def save(self, *rows: Row) -> None:
        """Rows alone. Raises :class:`LeaseLost` and :class:`NotKept`."""
        self._hold()
        kept(self._store.save, self.lease, *rows)

    def look(self) -> Progress | None:
        """All of the job. Raises :class:`NotKept`."""
        return kept(self._store.look, self.job.id)

    def begin(self) -> None:
        """Write down that the step begins a try. Raises :class:`KeyTaken` too."""
        with self._lock:
            row = replace(
                self.row,
                status=StepStatus.RUNNING,
                attempts=self.row.attempts + 1,
                started_at=self.row.started_at or self.now(),
            )
            self._hold()
            taken = kept(self._store.begin, self.lease, self.job.name, row)
            if taken is not None:
                raise KeyTaken(taken.name, taken.job_id)
            self.row = row

    def effect(self, wanted: EffectRecord) -> EffectRecord | None:
        """What is known of this effect. Raises :class:`NotKept`."""
        return kept(self._store.effect, self.job.name, wanted)

    def intend(self, wanted: EffectRecord, *, is_keyed: bool) -> EffectRecord | None:
        """Write down an intent, and give what was known of the effect before: see
        :meth:`~switchgear.steps.store.Store.intend`. Raises :class:`LeaseLost` and
        :class:`NotKept`."""
        self._hold()
        return kept(self._store.intend, self.lease, self.job.name, wanted, is_keyed)

    def succeeded(self, key: str) -> StepRecord | None:
        """A step of this name that succeeded under this key. Raises :class:`NotKept`."""
        return kept(self._store.succeeded, self.job.name, self.row.name, key)

    def _hold(self) -> None:
        if self.lease.is_lost:
            raise LeaseLost(self.lease.job_id)


def kept(ask: Callable[..., T], *args: Any) -> T:
    """What a store gives. Its troubles are no failure of the step: :class:`NotKept`; words that
    nobody could keep are."""
    try:
        return ask(*args)
    except (Refused, UnicodeError):
        raise
    except Exception as error:
        raise NotKept(said_by(error)) from error
