"""The ticks of dead letters."""

from datetime import datetime

from breakers.dead_letters.bulk import turns
from breakers.dead_letters.bulk.replays import TICK
from controlplane.core import ticks
from controlplane.core.jobs import engine

from . import intent_sweeper
from .monitoring import retention_rules, sampler
from .removals import retention

AT_ONCE = 5000
MAX_PURGED = 1_000_000


@ticks.tick("dlq.sample", seconds=5, queue="housekeeping")
def sample_dead_letters(now: datetime) -> int:
    """It waits for Redis servers that may be away: no place in a queue that others wait in."""
    return sampler.sample_servers(now)


@ticks.tick("dlq.settle", seconds=10, queue="dead-letters")
def settle_intents(now: datetime) -> int:
    """What was to leave, and whoever was at it died."""
    return intent_sweeper.sweep_intents(now)


@ticks.tick("dlq.retention", seconds=60, queue="housekeeping")
def archive_overdue_letters(now: datetime) -> int:
    return retention.archive_overdue(now)


@ticks.tick(
    "dlq.jobs", seconds=1, queue="dead-letters", pending=lambda now: [engine.due(TICK, now)]
)
def run_replays(now: datetime) -> int:
    return turns.turn(now)


@ticks.tick("dlq.purge", seconds=3600, queue="housekeeping")
def purge_history(now: datetime) -> int:
    return retention_rules.purge(now, at_once=AT_ONCE, most=MAX_PURGED)
