"""One turn of the clockwork: bulk jobs gone on with, one after the other, while any is due."""

import time
from datetime import datetime, timedelta

from django.db.models import Q

from breakers.dead_letters.bulk.replays import KIND, TICK
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import Job

TURN_SECONDS = 2.0
"""After so long no other job is begun with; the next turn of the clock does that."""


def turn(now: datetime) -> int:
    """Returns how many jobs moved. Any number of turns may be taken at once: each claims one job
    at a time, so that they share those that are due."""
    began, moved = time.monotonic(), 0
    while (passed := time.monotonic() - began) < TURN_SECONDS:
        at = now + timedelta(seconds=passed)
        if not _is_any_due(at):
            break
        moved += engine.turn(TICK, at)
    return moved


def _is_any_due(now: datetime) -> bool:
    is_free = Q(lease_until=None) | Q(lease_until__lte=now)
    return Job.objects.filter(is_free, kind=KIND, next_at__lte=now).exists()
