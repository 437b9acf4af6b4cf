"""Leases of due jobs, and writes that require the lease.

Each claim and each intervention of a person increments the job's fence. A worker's write matches
fence, state and step, so a worker that lost its lease changes no row.
"""

import os
import socket
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import transaction
from django.db.models import F

from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.sql import execute

LEASE = timedelta(seconds=15)
MAX_CHECKPOINT_BYTES = 10 * 1024  # Above this an alarm opens; nothing is rejected.
WORKER = f"{socket.gethostname()[:80]}:{os.getpid()}"

# Materialized: a re-evaluated subquery could claim more rows than the limit.
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
    """Another worker or a person has taken over the job; the write changed nothing."""


@dataclass
class LeasedJob:
    """A job leased to this worker, with the values that the worker last read or wrote.

    `inherited` is True if the previous worker never released its lease, so it may have died during
    any operation.
    """

    job: Job
    inherited: bool = False

    def change(self, **fields: Any) -> None:
        """Write fields of the job's row if its fence, state and step still match.

        Raises :class:`LeaseLost` if they don't match; the caller must then roll back its
        transaction.
        """
        job = self.job
        held = Job.objects.filter(
            pk=job.pk, fence=job.fence, state=job.state, step_index=job.step_index
        )
        if not held.update(**fields):
            raise LeaseLost(str(job))
        for name, value in fields.items():
            setattr(self.job, name, value)

    def checkpoint(
        self, data: Any, *, done: int, now: datetime, total: int | None = None, size: int
    ) -> None:
        """Store the job's position in the current step and its progress, and renew the lease.

        `done` of `total` items are processed; `size` is the JSON size of `data` in bytes. Call this
        every 50 to 200 items or 30 to 60 seconds. Raises :class:`LeaseLost`, also if a person has
        paused or cancelled the job.
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
        """Context manager: run the block in a transaction.

        A rollback also restores the attributes of the job object.
        """
        before = dict(self.job.__dict__)
        try:
            with transaction.atomic():
                yield
        except BaseException:
            self.job.__dict__.update(before)
            raise


def claim_jobs(kinds: Collection[str], now: datetime, *, most: int) -> list[LeasedJob]:
    """Lease up to `most` due jobs of these kinds to this worker, oldest heartbeats first.

    Jobs leased to other workers are skipped. Times in the future mean that the clock was set back:
    a lease that ends more than `LEASE` from now counts as expired, and a job with a heartbeat in
    the future is due if its `next_at` is at most a minute after the heartbeat.
    """
    lease = {"now": now, "until": now + LEASE, "worker": WORKER}
    with transaction.atomic():
        rows = Job.objects.raw(_CLAIM, {"kinds": list(kinds), "most": most, **lease})
        leased_jobs = [LeasedJob(job, job.__dict__["inherited"]) for job in rows]
    return sorted(leased_jobs, key=lambda leased: leased.job.pk)


def release_leases(jobs: Iterable[LeasedJob]) -> None:
    """Release those leases that this worker still has, so that the jobs can be claimed again."""
    held = {leased.job.pk: leased.job.fence for leased in jobs}
    execute(_GIVE_BACK, [list(held), list(held.values())])


def count_inherited_attempts(jobs: Iterable[LeasedJob]) -> None:
    """Count one more attempt for each job whose previous worker died, and for its running step."""
    died = [leased.job for leased in jobs if leased.inherited]
    if not died:
        return
    execute(_COUNT_ATTEMPTS, [[job.pk for job in died], [job.fence for job in died]])
    for job in died:
        job.attempts += 1


def store_step_data(held: Sequence[tuple[LeasedJob, JobStep]]) -> None:
    """Write the data of many steps in one statement, for jobs whose fence still matches."""
    columns = [
        [step.pk for _, step in held],
        [orjson.dumps(step.data).decode() for _, step in held],
        [leased.job.fence for leased, _ in held],
    ]
    execute(_STORE_STEP_DATA, columns)


def count_stopped_write(job_id: int) -> None:
    """Count, in the job's row, a prevented write: a stale worker's, or a repeated side effect."""
    Job.objects.filter(pk=job_id).update(duplicates_stopped=F("duplicates_stopped") + 1)
