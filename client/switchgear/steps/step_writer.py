"""Writes the current step of a job to the store."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from switchgear import journal
from switchgear.failures.error_labels import describe_error
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


@dataclass(eq=False)
class StepWriter:
    """Writes the record of one step of a job, under one lease.

    `row` is the record as last written. The methods raise :class:`LeaseLost` when writing, and
    :class:`NotKept` if the store fails.
    """

    store: Store
    lease: Lease
    job: JobRecord
    row: StepRecord
    now: Callable[[], float]

    def __post_init__(self) -> None:
        self._lock = threading.RLock()

    def write(self, *rows: Row, **changes: Any) -> None:
        """Write the step's record with `changes`, and other records in the same transaction."""
        with self._lock:  # A step may have threads.
            row = replace(self.row, **changes)
            self.save(row, *rows)
            self.row = row

    def save(self, *rows: Row) -> None:
        """Write records of the job other than the step's."""
        self._check_lease()
        call_store(self.store.save, self.lease, *rows)

    def look(self) -> Progress | None:
        """Return the job with its steps, effects and approvals; None if it does not exist."""
        return call_store(self.store.look, self.job.id)

    def begin(self) -> None:
        """Record the start of an attempt of the step.

        Raises :class:`KeyTaken` if another job holds the step's idempotency key.
        """
        with self._lock:
            row = replace(
                self.row,
                status=StepStatus.RUNNING,
                attempts=self.row.attempts + 1,
                started_at=self.row.started_at or self.now(),
            )
            self._check_lease()
            holder = call_store(self.store.begin, self.lease, self.job.name, row)
            if holder is not None:
                raise KeyTaken(holder.name, holder.job_id)
            self.row = row

    def intend(self, wanted: EffectRecord, *, is_keyed: bool) -> EffectRecord | None:
        """Record the intent of the effect `wanted`; return the record of an earlier attempt at it.

        See `Store.intend`.
        """
        self._check_lease()
        return call_store(self.store.intend, self.lease, self.job.name, wanted, is_keyed)

    def note(self, name: str, **fields: Any) -> None:
        """Record an event about the step in the journal."""
        journal.record(name, self.job.name, job=self.job.id, step=self.row.name, **fields)

    def _check_lease(self) -> None:
        if self.lease.is_lost:
            raise LeaseLost(self.lease.job_id)


def call_store(method: Callable[..., T], *args: Any) -> T:
    """Call a store's method and return its result.

    Raises :class:`NotKept` for the store's errors, so that the job pauses and the step does not
    fail. :class:`UnicodeError` is raised unchanged, since no store could encode that text.
    """
    try:
        return method(*args)
    except (Refused, UnicodeError):
        raise
    except Exception as error:
        raise NotKept(describe_error(error)) from error
