"""Handling of transitions that raise errors.

A failed transition is retried up to 5 times, then the ramp is compensated. A failed compensation
escalates to a person and is retried without limit.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from controlplane.core.jobs import endings
from controlplane.core.jobs.claims import LeasedJob
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.change_notices import notify_changed

from . import notifications

RETRY_DELAY = timedelta(seconds=10)
MAX_ATTEMPTS = 5


@transaction.atomic
def count_failure(turn: LeasedJob, step: JobStep, error: str) -> bool:
    """Count a failed attempt and return True if it was the last. Raise :class:`LeaseLost`."""
    JobStep.objects.filter(pk=step.pk).update(attempts=F("attempts") + 1, error=error)
    turn.change(error=error, attempts=turn.job.attempts + 1)
    notify_changed("ramps", str(turn.job.pk))
    return step.attempts + 1 >= MAX_ATTEMPTS


def record_failed_compensation(turn: LeasedJob, why: str, error: str, now: datetime) -> None:
    """Record that a compensation failed and escalate it to a person once.

    `why` is the reason for compensating, `error` the failure. The state is written in its own
    transaction because the escalation may fail. Raise :class:`LeaseLost`.
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
    notify_changed("ramps", str(turn.job.pk))
    if endings.is_called(job, endings.NOT_COMPENSATED):
        return
    with transaction.atomic():
        notifications.notify_failed_compensation(job, f"{why} {said}", now)
        endings.call_failed_compensation(job, f"{why} {said}", now)
