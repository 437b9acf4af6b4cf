"""Calls of dependencies in the last five minutes, and which dependencies they show as failing."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.db.models import Sum

from breakers.counts import COUNTERS, BreakerCounts
from breakers.models import Minute
from controlplane.core.sql import fetch_all

RECENT_MINUTES = 5
FAILING_SHARE = 0.05
"""Calls fail, by the rule of `find_failing`, if this share of them failed or was rejected."""
# Sums of bigints are numerics, which are slow; these are far below 2**53.
_FAILING = """
    SELECT dependency_id FROM breakers_minute
    WHERE minute >= %(recent)s
    GROUP BY dependency_id
    HAVING sum((failure + timeout + rejected)::float8)
           >= %(share)s * greatest(sum((success + failure + timeout + rejected)::float8), 1)
"""


def first_recent_minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0) - timedelta(minutes=RECENT_MINUTES - 1)


def find_failing(now: datetime) -> frozenset[int]:
    """Return the ids of the dependencies whose recent calls fail, whatever their breakers' state.

    Rejected calls count as failed, as they do for callers.
    """
    values = {"recent": first_recent_minute(now), "share": FAILING_SHARE}
    return frozenset(pk for (pk,) in fetch_all(_FAILING, values))


def load_recent_counts(ids: Collection[int], now: datetime) -> Mapping[int, BreakerCounts]:
    """Return the recent calls of dependencies by id; those without calls are left out."""
    rows = Minute.objects.filter(dependency__in=ids, minute__gte=first_recent_minute(now))
    sums = {f"all_{name}": Sum(name) for name in COUNTERS}
    found = rows.values_list("dependency").annotate(**sums).order_by()
    return {pk: BreakerCounts(*map(int, counts)) for pk, *counts in found}
