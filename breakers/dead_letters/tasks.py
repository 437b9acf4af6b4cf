"""Periodic tasks (ticks) of dead letters."""

import time
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Q

from breakers.dead_letters.bulk.replays import KIND, TICK
from controlplane.core import ticks
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import Job

from . import intent_sweeper, retention_rules
from .monitoring import sampler
from .removals import retention

JOBS_SECONDS = 2.0
"""Time limit after which a run starts no other bulk job."""


@ticks.tick(
    "dlq.jobs",
    seconds=1,
    queue="dead-letters",
    pending=lambda now: [engine.find_due_jobs(TICK, now)],
)
def run_replays(now: datetime) -> int:
    """Run due bulk jobs, one after the other, for a few seconds; return how many progressed.

    Several workers may run this at once: each claims one job at a time.
    """
    began, moved = time.monotonic(), 0
    while (passed := time.monotonic() - began) < JOBS_SECONDS:
        at = now + timedelta(seconds=passed)
        is_free = Q(lease_until=None) | Q(lease_until__lte=at)
        if not Job.objects.filter(is_free, kind=KIND, next_at__lte=at).exists():
            break
        moved += engine.run_tick(TICK, at)
    return moved


for name, seconds, queue, run in (
    # On the housekeeping queue, as the timeout of an unavailable server takes seconds.
    ("dlq.sample", 5, "housekeeping", sampler.sample_servers),
    ("dlq.settle", 10, "dead-letters", intent_sweeper.sweep_intents),
    ("dlq.retention", 60, "housekeeping", retention.archive_overdue),
    ("dlq.purge", 3600, "housekeeping", partial(retention_rules.purge, at_once=5000)),
):
    ticks.tick(name, seconds=seconds, queue=queue)(run)
