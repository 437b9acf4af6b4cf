"""The row of the step at hand, and the way to write it down."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from switchgear.failing.words import said_by
from switchgear.refusals import Refused
from switchgear.steps.errors import LeaseLost, NotKept
from switchgear.steps.records import EffectRecord, JobRecord, Lease, Progress, Row, StepRecord
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
        if self.lease.is_lost:
            raise LeaseLost(self.lease.job_id)
        kept(self._store.save, self.lease, *rows)

    def look(self) -> Progress | None:
        """All of the job. Raises :class:`NotKept`."""
        return kept(self._store.look, self.job.id)

    def effect(self, key: str) -> EffectRecord | None:
        """The effect of this key. Raises :class:`NotKept`."""
        return kept(self._store.effect, self.job.id, self.job.name, key)

    def succeeded(self, key: str) -> StepRecord | None:
        """A step that succeeded under this key. Raises :class:`NotKept`."""
        return kept(self._store.succeeded, self.job.name, key)


def kept(ask: Callable[..., T], *args: Any) -> T:
    """What a store gives. Its troubles are no failure of the step: :class:`NotKept`."""
    try:
        return ask(*args)
    except Refused:
        raise
    except Exception as error:
        raise NotKept(said_by(error)) from error
