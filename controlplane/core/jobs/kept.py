"""How long jobs are kept that are over: as long as their kind says, and for ever if it doesn't."""

from datetime import datetime, timedelta

from controlplane.core.jobs import kinds
from controlplane.core.jobs.models import Job


def purge(now: datetime, *, most: int) -> int:
    """Delete jobs whose time is over, with their steps and effects; returns how many jobs.

    What is counted for as long as the house stands stays: failed compensations, and duplicates.
    """
    deleted = 0
    for kind in kinds.known().values():
        if kind.kept_days is None:
            continue
        old = Job.objects.filter(
            kind=kind.name,
            finished_at__lt=now - timedelta(days=kind.kept_days),
            compensation_failed_at=None,
            duplicates_stopped=0,
        )
        pks = list(old.order_by("finished_at").values_list("pk", flat=True)[:most])
        Job.objects.filter(pk__in=pks).delete()
        deleted += len(pks)
    return deleted
