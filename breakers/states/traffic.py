"""Calls of a dependency in the last minutes, for the consequences of an override."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Sum

from breakers.models import Dependency, Minute
from breakers.models.registry import Criticality

PERIOD = timedelta(minutes=5)
MAX_CALLERS = 5
CALLS = ("success", "failure", "timeout", "rejected")
"""The counters of calls, each of which counts a call once."""


@dataclass(frozen=True)
class DependencyTraffic:
    """The calls of a dependency in the 5 minutes before `until`, and the callers of its caller.

    `per_second` is None if no instance reported counts; it includes rejected calls. `failing` is
    the ratio of those that failed, timed out or were rejected, None without calls.
    """

    until: datetime
    per_second: float | None
    failing: float | None
    callers: Sequence[Dependency]
    callers_total: int


def read_traffic(dependency: Dependency, now: datetime) -> DependencyTraffic:
    """Return the traffic of a dependency in the last 5 whole minutes.

    `callers` are the 5 most critical ones.
    """
    until = now.replace(second=0, microsecond=0)
    rows = Minute.objects.filter(
        dependency=dependency, minute__gte=until - PERIOD, minute__lt=until
    )
    sums = rows.aggregate(**{name: Sum(name) for name in CALLS})
    is_known = sums["success"] is not None
    calls = sum(sums.values()) if is_known else 0
    callers = sorted(
        Dependency.objects.registered().filter(callee=dependency.caller),
        key=lambda one: (Criticality.values.index(one.criticality), one.caller),
    )
    return DependencyTraffic(
        until=until,
        per_second=calls / PERIOD.total_seconds() if is_known else None,
        failing=1 - sums["success"] / calls if calls else None,
        callers=callers[:MAX_CALLERS],
        callers_total=len(callers),
    )
