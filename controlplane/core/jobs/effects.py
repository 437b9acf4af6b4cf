"""Side effects of jobs, recorded under unique keys so that each happens once."""

from datetime import datetime

from controlplane.core.jobs.models import Job, JobEffect
from controlplane.core.sql import execute

_INSERT = """
    INSERT INTO core_jobeffect (key, job_id, step_index, name, attempted_at, done_at)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING
"""


class AlreadyDone(Exception):
    """The side effect was recorded by an earlier attempt.

    A step that raises this counts as passed, because an earlier worker completed it before it died.
    A step with several effects catches this and continues with the next effect.
    """


def record_effect(job: Job, name: str, *, now: datetime) -> str:
    """Record a job's side effect that happens in the current transaction; return its key.

    Raises :class:`AlreadyDone` if the job's step recorded it before; the caller must then roll back
    its transaction.
    """
    return _write(job, name, now, done_at=now)


def begin_effect(job: Job, name: str, *, now: datetime) -> str:
    """Record and commit the attempt at a job's side effect outside the database; return its key.

    Raises :class:`AlreadyDone` if the effect was completed. If an earlier attempt never completed,
    the same key is returned, so the external system can deduplicate by it.
    """
    key = build_key(job, name)
    effect = JobEffect.objects.filter(key=key).first()
    if effect is None:
        return _write(job, name, now, done_at=None)
    if effect.done_at is not None:
        raise AlreadyDone(key)
    return key


def end_effect(key: str, *, now: datetime) -> None:
    JobEffect.objects.filter(key=key, done_at=None).update(done_at=now)


def build_key(job: Job, name: str) -> str:
    """Return the key of a side effect: kind, job, step and name, such as `ramp:12:1:advance`."""
    return f"{job.kind}:{job.pk}:{job.step_index}:{name}"


def _write(job: Job, name: str, now: datetime, *, done_at: datetime | None) -> str:
    key = build_key(job, name)
    if not execute(_INSERT, [key, job.pk, job.step_index, name, now, done_at]):
        raise AlreadyDone(key)
    return key
