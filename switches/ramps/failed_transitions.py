"""Transitions that fail.

A transition is retried a few times, then the ramp goes back. A compensation that fails calls a
person and is retried without limit.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from controlplane.core.jobs import endings
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.change_notices import changed

from . import notifications

RETRY_DELAY = timedelta(seconds=10)
MAX_ATTEMPTS = 5


@transaction.atomic
def count_failure(turn: LeasedJob, step: JobStep, error: str) -> bool:
    """Count a failed attempt; return True if it was the last one. Raise :class:`LeaseLost`."""
    JobStep.objects.filter(pk=step.pk).update(attempts=F("attempts") + 1, error=error)
    turn.change(error=error, attempts=turn.job.attempts + 1)
    changed("ramps", str(turn.job.pk))
    return step.attempts + 1 >= MAX_ATTEMPTS


def record_failed_compensation(turn: LeasedJob, why: str, error: str, now: datetime) -> None:
    """Record that the switch can't be engaged again now, and call a person once.

    `why` is the reason to go back, `error` the failure. The state is written in its own
    transaction, since calling a person may fail. Raises :class:`LeaseLost`.
    """
    job, said = turn.job, f"It could not be engaged again: {error}"
    turn.change(
        state=Job.State.FAILED,
        finished_at=job.finished_at or now,
        next_at=now + RETRY_DELAY,
        error=why,
        outcome=said,
        compensation_failed_at=now,
    )
    changed("ramps", str(turn.job.pk))
    if endings.is_called(job, endings.NOT_COMPENSATED):
        return
    with transaction.atomic():
        notifications.notify_failed_compensation(job, f"{why} {said}", now)
        endings.call_failed_compensation(job, f"{why} {said}", now)
