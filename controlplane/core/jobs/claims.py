"""Taking due jobs under a lease, and changing them only while it is held.

Whoever claims a job gets a higher fence; so does a person who intervenes. Every write of a worker
names the fence it was given and the state and step it saw: without them it touches no row.
"""

import os
import socket
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet

from controlplane.core.jobs.models import Job

LEASE = timedelta(seconds=15)
MAX_CHECKPOINT_BYTES = 10 * 1024  # bytes; beyond it the design of the job is looked at again.
WORKER = f"{socket.gethostname()[:80]}:{os.getpid()}"

# Materialized: a plan that looked again for each row of the table would take more than the most.
_CLAIM = """
    WITH due AS MATERIALIZED (
        SELECT id, lease_until IS NOT NULL AS inherited FROM core_job
        WHERE kind = ANY(%(kinds)s) AND (next_at <= %(now)s
               OR (heartbeat_at > %(until)s AND next_at <= heartbeat_at + interval '1 minute'))
          AND (lease_until IS NULL OR lease_until <= %(now)s OR lease_until > %(until)s)
        ORDER BY heartbeat_at NULLS FIRST, id LIMIT %(most)s FOR UPDATE SKIP LOCKED
    )
    UPDATE core_job SET fence = fence + 1, lease_until = %(until)s, worker = %(worker)s,
           heartbeat_at = %(now)s, next_at = least(next_at, %(now)s)
    FROM due WHERE core_job.id = due.id
    RETURNING core_job.*, due.inherited
"""
_GIVE_BACK = """
    UPDATE core_job SET lease_until = NULL
    FROM unnest(%s::bigint[], %s::bigint[]) AS ours(id, fence)
    WHERE core_job.id = ours.id AND core_job.fence = ours.fence
"""


class LeaseLost(Exception):
    """Somebody else works on the job by now, or a person intervened: nothing was written."""


@dataclass
class Turn:
    """One job that we hold the lease of, as it was when we last wrote it.

    `inherited`: whoever held the lease before never gave it back. It may have died at any line.
    """

    job: Job
    inherited: bool = False

    def change(self, **fields: Any) -> None:
        """Write the job's row, compared and set on fence, state and step.

        Raises :class:`LeaseLost` if somebody else has it by now; the caller's transaction has to
        be rolled back then.
        """
        if not self._held().update(**fields):
            raise LeaseLost(str(self.job))
        for name, value in fields.items():
            setattr(self.job, name, value)

    def checkpoint(
        self, data: Any, *, done: int, now: datetime, total: int | None = None, size: int
    ) -> None:
        """Keep where the present step goes on, and `done` items of `total`; renews the lease.

        `size` is that of `data` in bytes of JSON. To be called every 50 to 200 items or 30 to
        60 seconds. Raises :class:`LeaseLost`, also after a person has paused or cancelled it.
        """
        self.change(
            checkpoint=data,
            checkpoint_at=now,
            checkpoint_bytes=size,
            done=done,
            total=self.job.total if total is None else total,
            lease_until=now + LEASE,
            heartbeat_at=now,
        )

    def heartbeat(self, now: datetime) -> None:
        """Say that we are still at it; renews the lease. Raises :class:`LeaseLost`."""
        self.change(lease_until=now + LEASE, heartbeat_at=now)

    @contextmanager
    def together(self) -> Iterator[None]:
        """A transaction; rolled back, it leaves the job at hand as it was, like the row."""
        before = dict(self.job.__dict__)
        try:
            with transaction.atomic():
                yield
        except BaseException:
            self.job.__dict__.update(before)
            raise

    def _held(self) -> QuerySet[Job]:
        job = self.job
        return Job.objects.filter(
            pk=job.pk, fence=job.fence, state=job.state, step_index=job.step_index
        )


def claim(kinds: Collection[str], now: datetime, *, most: int) -> list[Turn]:
    """Lease up to `most` jobs that are due, those left alone longest first; each counts as alive.

    Jobs that others hold are passed over. A lease that would last longer than any does was given
    before the clock was set back: it is over. What was last looked at in the future, and was to be
    looked at again soon, is due for the same reason, and stays due from then on.
    """
    with transaction.atomic():
        found = Job.objects.raw(
            _CLAIM,
            {
                "kinds": list(kinds),
                "now": now,
                "until": now + LEASE,
                "worker": WORKER,
                "most": most,
            },
        )
        turns = [Turn(job, job.__dict__["inherited"]) for job in found]
    return sorted(turns, key=lambda turn: turn.job.pk)


def give_back(turns: Iterable[Turn]) -> None:
    """End the leases that are still ours, so that the next turn need not wait for their end."""
    held = {turn.job.pk: turn.job.fence for turn in turns}
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_BACK, [list(held), list(held.values())])


def stopped(job_id: int) -> None:
    """Count a write that came too late, or a side effect that was there already."""
    Job.objects.filter(pk=job_id).update(duplicates_stopped=F("duplicates_stopped") + 1)
