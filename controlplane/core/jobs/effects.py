"""The side effects of jobs: each once by its key, its attempt and its end kept apart."""

from datetime import datetime

from django.db import connection

from controlplane.core.jobs.models import Job, JobEffect

_INSERT = """
    INSERT INTO core_jobeffect (key, job_id, step_index, name, attempted_at, done_at)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING
"""


class AlreadyDone(Exception):
    """The effect has been had before: whoever wants it again changes nothing.

    A step that ends with this has passed: a worker that died had its effect. One that has more than
    one effect handles it itself, and goes on to the next.
    """


def had(job: Job, name: str, *, now: datetime) -> str:
    """An effect that this very transaction has (a publication, a row of the outbox): its key.

    Raises :class:`AlreadyDone` if the job has had it in this step before; the caller's transaction
    has to be rolled back then.
    """
    return _write(job, name, now, done_at=now)


def begin(job: Job, name: str, *, now: datetime) -> str:
    """Note that an effect outside the database is about to be had, and commit that before it is.

    Raises :class:`AlreadyDone` if it is known to be done. One that was begun and never ended has
    its key returned again: the key goes to whoever has the effect, and stops it there.
    """
    key = key_of(job, name)
    known = JobEffect.objects.filter(key=key).first()
    if known is None:
        return _write(job, name, now, done_at=None)
    if known.done_at is not None:
        raise AlreadyDone(key)
    return key


def end(key: str, *, now: datetime) -> None:
    """The effect of this key is known to have been had."""
    JobEffect.objects.filter(key=key, done_at=None).update(done_at=now)


def key_of(job: Job, name: str) -> str:
    """`ramp:12:1:advance`: kind, job, step, effect."""
    return f"{job.kind}:{job.pk}:{job.step_index}:{name}"


def _write(job: Job, name: str, now: datetime, *, done_at: datetime | None) -> str:
    key = key_of(job, name)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [key, job.pk, job.step_index, name, now, done_at])
        if not cursor.rowcount:
            raise AlreadyDone(key)
    return key
