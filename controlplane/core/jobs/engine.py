"""The job engine's periodic run (tick): claims due jobs, runs them, releases their leases."""

from datetime import datetime

from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable

from controlplane.core.jobs import claims, failures, kinds
from controlplane.core.jobs.kinds import Probe, no_probe
from controlplane.core.jobs.models import Job


def find_due_jobs(tick: str, now: Combinable) -> QuerySet[Job]:
    """Return the due jobs, leased or not, that the periodic task `tick` runs.

    `now` is a database expression, such as `Now()`. Jobs with a heartbeat in the future count as
    due, because the clock was set back.
    """
    names = [kind.name for kind in kinds.get_kinds_of_tick(tick)]
    return Job.objects.filter(Q(next_at__lte=now) | Q(heartbeat_at__gt=now), kind__in=names)


def run_tick(tick: str, now: datetime, probe: Probe = no_probe) -> int:
    """Run every due job that belongs to the periodic task `tick`; return how many progressed.

    Safe to run concurrently: a job is leased to one worker, and its lease expires if the worker
    dies. An error in one kind of job does not stop the others. Leases are released after errors
    too, unless the database is unreachable.
    """
    moved, failed, clock = 0, [], failures.start_clock(now)
    for kind in kinds.get_kinds_of_tick(tick):
        at = clock()
        leased_jobs = claims.claim_jobs([kind.name], at, most=kind.most)
        if not leased_jobs:
            continue
        probe(f"{kind.name}.claimed")
        try:
            moved += kind.work(leased_jobs, at, probe)
        except Exception as error:
            if failures.is_database_away(error):
                raise
            failed.append(error)
        probe(f"{kind.name}.worked")
        claims.release_leases(leased_jobs)
    if failed:
        raise ExceptionGroup("some kinds of jobs could not continue", failed)
    return moved
