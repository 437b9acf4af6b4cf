"""Calls of dependencies in the last five minutes, and the share at which they count as failing."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from breakers.counts import BreakerCounts
from breakers.models import Minute
from breakers.states.dependency_status import CLOSED
from breakers.states.history import sum_counts

RECENT_MINUTES = 5
FAILING_SHARE = 0.05
"""A dependency is failing if this share of its recent calls failed or was rejected."""


def is_failing(state: str, recent: BreakerCounts) -> bool:
    """Return True if the recent calls fail though the breaker is closed."""
    share = recent.caller_failure_share
    return state == CLOSED and share is not None and share >= FAILING_SHARE


def first_recent_minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0) - timedelta(minutes=RECENT_MINUTES - 1)


def load_recent_counts(ids: Collection[int], now: datetime) -> Mapping[int, BreakerCounts]:
    """Return the recent calls of dependencies by id; those without calls are left out."""
    rows = Minute.objects.filter(dependency__in=ids, minute__gte=first_recent_minute(now))
    minutes: dict[int, list[Minute]] = defaultdict(list)
    for minute in rows:
        minutes[minute.dependency_id].append(minute)
    return {pk: sum_counts(found) for pk, found in minutes.items()}
