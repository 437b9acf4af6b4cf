"""The tick of the job engine: claim due jobs, run their kind, give the leases back."""

from datetime import datetime

from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable

from controlplane.core.jobs import claims, failures, kinds
from controlplane.core.jobs.kinds import Probe, no_probe
from controlplane.core.jobs.models import Job


def find_due_jobs(tick: str, now: Combinable) -> QuerySet[Job]:
    """Return the jobs of a tick that are due at `now`, a query expression, leased or not.

    Includes jobs whose times lie ahead because the clock was set back.
    """
    names = [kind.name for kind in kinds.get_kinds_of_tick(tick)]
    return Job.objects.filter(Q(next_at__lte=now) | Q(heartbeat_at__gt=now), kind__in=names)


def run_tick(tick: str, now: datetime, probe: Probe = no_probe) -> int:
    """Run every due job of a tick's kinds; return the number of jobs that moved.

    Safe to run concurrently: a job is leased to one worker at a time, and a dead worker is followed
    when its lease ends. A failing kind does not stop the others. Leases are given back whatever
    failed, unless the database is away.
    """
    moved, failed, clock = 0, [], failures.start_clock(now)
    for kind in kinds.get_kinds_of_tick(tick):
        at = clock()
        turns = claims.claim([kind.name], at, most=kind.most)
        if not turns:
            continue
        probe(f"{kind.name}.claimed")
        try:
            moved += kind.work(turns, at, probe)
        except Exception as error:
            if failures.is_database_away(error):
                raise
            failed.append(error)
        probe(f"{kind.name}.worked")
        claims.release_leases(turns)
    if failed:
        raise ExceptionGroup("some kinds of jobs could not go on", failed)
    return moved
