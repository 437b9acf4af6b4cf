"""Calls of dependencies in the last five minutes, and the share at which they count as failing."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.db.models import F, Sum

from breakers.counts import COUNTERS, BreakerCounts
from breakers.models import Minute
from breakers.states.dependency_status import CLOSED

RECENT_MINUTES = 5
FAILING_SHARE = 0.05
"""A dependency is failing if this share of its recent calls failed or was rejected."""
_SUMS = {f"all_{name}": Sum(name) for name in COUNTERS}


def is_failing(state: str, recent: BreakerCounts) -> bool:
    """Return True if the recent calls fail though the breaker is closed."""
    return state == CLOSED and calls_fail(recent)


def calls_fail(recent: BreakerCounts) -> bool:
    """Return True if so many of the calls failed or were rejected that callers notice."""
    share = recent.caller_failure_share
    return share is not None and share >= FAILING_SHARE


def first_recent_minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0) - timedelta(minutes=RECENT_MINUTES - 1)


def load_recent_counts(ids: Collection[int], now: datetime) -> Mapping[int, BreakerCounts]:
    """Return the recent calls of dependencies by id; those without calls are left out."""
    rows = Minute.objects.filter(dependency__in=ids, minute__gte=first_recent_minute(now))
    sums = rows.values_list("dependency").annotate(**_SUMS).order_by()
    return {pk: BreakerCounts(*map(int, counts)) for pk, *counts in sums}


def find_failing(now: datetime) -> list[int]:
    """Return the ids of the dependencies whose recent calls fail, whatever their state."""
    rows = Minute.objects.filter(minute__gte=first_recent_minute(now)).values_list("dependency")
    failures = Sum(F("failure") + F("timeout") + F("rejected"))
    sums = rows.alias(failures=failures).filter(failures__gt=0).annotate(**_SUMS).order_by()
    return [pk for pk, *counts in sums if calls_fail(BreakerCounts(*map(int, counts)))]
