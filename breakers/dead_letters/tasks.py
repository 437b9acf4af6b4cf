"""Periodic tasks (ticks) of dead letters."""

import time
from datetime import datetime, timedelta

from django.db.models import Q

from breakers.dead_letters.bulk.replays import KIND, TICK
from controlplane.core import ticks
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import Job

from . import intent_sweeper, retention_rules
from .monitoring import sampler
from .removals import retention

AT_ONCE = 5000
MAX_PURGED = 1_000_000
JOBS_SECONDS = 2.0
"""Time limit after which a run starts no other bulk job."""


@ticks.tick("dlq.sample", seconds=5, queue="housekeeping")
def sample_dead_letters(now: datetime) -> int:
    """Sample the streams of all servers.

    Runs on the housekeeping queue, as the timeout of an unavailable server takes seconds.
    """
    return sampler.sample_servers(now)


@ticks.tick("dlq.settle", seconds=10, queue="dead-letters")
def settle_intents(now: datetime) -> int:
    """Settle overdue removal intents."""
    return intent_sweeper.sweep_intents(now)


@ticks.tick("dlq.retention", seconds=60, queue="housekeeping")
def archive_overdue_letters(now: datetime) -> int:
    return retention.archive_overdue(now)


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


@ticks.tick("dlq.purge", seconds=3600, queue="housekeeping")
def purge_history(now: datetime) -> int:
    return retention_rules.purge(now, at_once=AT_ONCE, most=MAX_PURGED)
