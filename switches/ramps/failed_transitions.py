"""Moves that fail: tried again, some times; then the ramp goes back. A way back that fails calls a
person, and is tried for as long as it takes."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from controlplane.core.jobs import endings
from controlplane.core.jobs.claims import Turn
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.live.notes import changed

from . import notifications

TRY_AGAIN = timedelta(seconds=10)
MAX_ATTEMPTS = 5


@transaction.atomic
def tried_enough(turn: Turn, step: JobStep, error: str) -> bool:
    """Count a try to go on; True if it was the last one. Raises :class:`LeaseLost`."""
    JobStep.objects.filter(pk=step.pk).update(attempts=F("attempts") + 1, error=error)
    turn.change(error=error, attempts=turn.job.attempts + 1)
    changed("ramps", str(turn.job.pk))
    return step.attempts + 1 >= MAX_ATTEMPTS


def no_way_back(turn: Turn, why: str, error: str, now: datetime) -> None:
    """It can't be engaged again now: `why` it has to be, and the `error`. Raises LeaseLost.

    What it has come to is written by itself, for figures and banners: perhaps nobody can be called.
    """
    job, said = turn.job, f"It could not be engaged again: {error}"
    turn.change(
        state=Job.State.FAILED,
        finished_at=job.finished_at or now,
        next_at=now + TRY_AGAIN,
        error=why,
        outcome=said,
        compensation_failed_at=now,
    )
    changed("ramps", str(turn.job.pk))
    if endings.is_called(job, endings.NOT_COMPENSATED):
        return
    with transaction.atomic():
        notifications.failed(job, f"{why} {said}", now)
        endings.not_compensated(job, f"{why} {said}", now)
