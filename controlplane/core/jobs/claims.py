"""Leases of due jobs, and writes that only succeed while the lease is held.

Each claim and each intervention of a person raises the fence. Every write of a worker compares
fence, state and step, so that it changes no row once it lost its lease.
"""

import os
import socket
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import connection, transaction
from django.db.models import F, QuerySet

from controlplane.core.jobs.models import Job, JobStep

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
_COUNT_ATTEMPTS = """
    WITH ours AS (
        UPDATE core_job SET attempts = attempts + 1
        FROM unnest(%s::bigint[], %s::bigint[]) AS held(id, fence)
        WHERE core_job.id = held.id AND core_job.fence = held.fence
        RETURNING core_job.id, core_job.step_index
    )
    UPDATE core_jobstep SET attempts = attempts + 1 FROM ours
    WHERE job_id = ours.id AND index = ours.step_index AND state = 'running'
"""
_STORE_STEP_DATA = """
    UPDATE core_jobstep SET data = new.data
    FROM unnest(%s::bigint[], %s::jsonb[], %s::bigint[]) AS new(id, data, fence),
         core_job AS job
    WHERE core_jobstep.id = new.id AND job.id = core_jobstep.job_id AND job.fence = new.fence
"""


class LeaseLost(Exception):
    """Another worker or a person has taken the job over: nothing was written."""


@dataclass
class LeasedJob:
    """A leased job as it was last written.

    `inherited` is True if the previous holder never gave its lease back: it may have died at any
    line.
    """

    job: Job
    inherited: bool = False

    def change(self, **fields: Any) -> None:
        """Write the job's row if fence, state and step still match.

        Raises :class:`LeaseLost` if they don't; the caller's transaction has to be rolled back
        then.
        """
        if not self._held().update(**fields):
            raise LeaseLost(str(self.job))
        for name, value in fields.items():
            setattr(self.job, name, value)

    def checkpoint(
        self, data: Any, *, done: int, now: datetime, total: int | None = None, size: int
    ) -> None:
        """Store where the current step goes on, and `done` of `total` items; renews the lease.

        `size` is that of `data` in bytes of JSON. Call it every 50 to 200 items or 30 to 60
        seconds. Raises :class:`LeaseLost`, also after a person has paused or cancelled the job.
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
        """Renew the lease. Raise :class:`LeaseLost` if it is lost."""
        self.change(lease_until=now + LEASE, heartbeat_at=now)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Open a transaction; if it is rolled back, the job object is restored like the row."""
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


def claim(kinds: Collection[str], now: datetime, *, most: int) -> list[LeasedJob]:
    """Lease up to `most` due jobs, those left alone longest first.

    Jobs that others hold are skipped. A lease longer than any was given before the clock was set
    back, so it is over. A job that was last touched in the future, and was due soon after, is due
    for the same reason, and stays due.
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
        turns = [LeasedJob(job, job.__dict__["inherited"]) for job in found]
    return sorted(turns, key=lambda turn: turn.job.pk)


def release_leases(turns: Iterable[LeasedJob]) -> None:
    """End the leases that are still held, so that the next tick need not wait for them."""
    held = {turn.job.pk: turn.job.fence for turn in turns}
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_BACK, [list(held), list(held.values())])


def count_inherited_attempts(turns: Iterable[LeasedJob]) -> None:
    """Count an attempt at the running step of jobs whose worker died; lost leases count nothing."""
    died = [turn.job for turn in turns if turn.inherited]
    if not died:
        return
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_ATTEMPTS, [[job.pk for job in died], [job.fence for job in died]])
    for job in died:
        job.attempts += 1


def store_step_data(held: Sequence[tuple[LeasedJob, JobStep]]) -> None:
    """Write the data of steps in one statement, for jobs whose fence still matches."""
    with connection.cursor() as cursor:
        cursor.execute(
            _STORE_STEP_DATA,
            [
                [step.pk for _, step in held],
                [orjson.dumps(step.data).decode() for _, step in held],
                [turn.job.fence for turn, _ in held],
            ],
        )


def count_stopped_write(job_id: int) -> None:
    """Count a write that came too late, or a repeated side effect."""
    Job.objects.filter(pk=job_id).update(duplicates_stopped=F("duplicates_stopped") + 1)
