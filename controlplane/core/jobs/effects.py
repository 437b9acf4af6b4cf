"""Side effects of jobs, each once by its key; attempt and completion are recorded apart."""

from datetime import datetime

from django.db import connection

from controlplane.core.jobs.models import Job, JobEffect

_INSERT = """
    INSERT INTO core_jobeffect (key, job_id, step_index, name, attempted_at, done_at)
    VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING
"""


class AlreadyDone(Exception):
    """The effect happened before.

    A step that ends with this has passed: a worker that died had its effect. A step with several
    effects handles it itself and goes on to the next.
    """


def record_effect(job: Job, name: str, *, now: datetime) -> str:
    """Record an effect of this very transaction (a publication, an outbox row); return its key.

    Raises :class:`AlreadyDone` if the job had it in this step before; the caller's transaction has
    to be rolled back then.
    """
    return _write(job, name, now, done_at=now)


def begin_effect(job: Job, name: str, *, now: datetime) -> str:
    """Commit that an effect outside the database is about to happen; return its key.

    Raises :class:`AlreadyDone` if it is known to be done. An effect that was begun and never ended
    has its key returned again; the key makes it idempotent there.
    """
    key = build_key(job, name)
    known = JobEffect.objects.filter(key=key).first()
    if known is None:
        return _write(job, name, now, done_at=None)
    if known.done_at is not None:
        raise AlreadyDone(key)
    return key


def end_effect(key: str, *, now: datetime) -> None:
    """Record that the effect of this key happened."""
    JobEffect.objects.filter(key=key, done_at=None).update(done_at=now)


def build_key(job: Job, name: str) -> str:
    """Return the key of an effect, such as `ramp:12:1:advance`: kind, job, step, effect."""
    return f"{job.kind}:{job.pk}:{job.step_index}:{name}"


def _write(job: Job, name: str, now: datetime, *, done_at: datetime | None) -> str:
    key = build_key(job, name)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [key, job.pk, job.step_index, name, now, done_at])
        if not cursor.rowcount:
            raise AlreadyDone(key)
    return key
