"""Live notifications about instances that stop reporting."""

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Value
from django.db.models.expressions import Combinable

from controlplane.core.freshness import GONE_AFTER, INSTANCE_CADENCE
from controlplane.core.instances.exports import INSTANCES
from controlplane.core.instances.models import Instance
from controlplane.core.live import change_notices
from controlplane.core.models import Tick
from controlplane.core.sql import fetch_all

TICK = "breakers.watch"
MAX_LOOKBACK = timedelta(minutes=1)
"""Longest lookback; if the last run was earlier, open pages reload everything instead."""
OVERLAP = timedelta(seconds=15)
"""Overlap with the last run, since `Tick.ran_at` is the time after that run, even a failed one."""

_FADED = f"""
    SELECT DISTINCT d.caller || '->' || d.callee
    FROM {INSTANCES}
    JOIN breakers_breakerstate s ON s.instance = i.id AND s.boot = i.boot
    JOIN breakers_dependency d ON d.id = s.dependency_id
    WHERE (i.reported_at >= %(stale_from)s AND i.reported_at < %(stale)s)
       OR (i.reported_at >= %(gone_from)s AND i.reported_at < %(gone)s)
"""  # noqa: S608


def find_pending(now: Combinable) -> QuerySet[Instance]:
    """Return the instances that became stale or gone within the last minute, to notify pages.

    `now` is a database expression, such as `Now()`.
    """
    just_stale, just_gone = (
        Q(reported_at__gte=now - Value(age + MAX_LOOKBACK), reported_at__lt=now - Value(age))
        for age in (INSTANCE_CADENCE, GONE_AFTER)
    )
    return Instance.objects.filter(just_stale | just_gone)


def notify_stale(now: datetime) -> int:
    """Notify open pages of dependencies whose instances became stale or gone; return how many."""
    last = Tick.objects.filter(name=TICK).values_list("ran_at", flat=True).first()
    if last is None or now - last > MAX_LOOKBACK:
        change_notices.notify_missed()
        return 0
    passed = max(now - last, timedelta()) + OVERLAP
    stale, gone = now - INSTANCE_CADENCE, now - GONE_AFTER
    values = {
        "stale": stale,
        "stale_from": stale - passed,
        "gone": gone,
        "gone_from": gone - passed,
    }
    found = [name for (name,) in fetch_all(_FADED, values)]
    change_notices.notify_changed("breakers", *found)
    return len(found)
