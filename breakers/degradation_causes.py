"""Causes of degradation: breakers that are not closed and probes that fail.

A dependency counts if it is critical or high, or leads to a service of this installation. The loss
of its callee has the level that the registry gives it if half of the instances can't get through or
its probe fails; otherwise the lowest level.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from controlplane.core import degradation_levels as levels
from controlplane.core.degradation import services
from controlplane.core.degradation_levels import Cause

from .models import BreakerState, Probe, Service
from .states import unhealthy
from .states.unhealthy import UnhealthyDependency

MAX_CAUSES = 50
GRAVE_SHARE = 0.5
ADVISORY_LOCK = (0x5317, 2)
"""Two-number advisory lock; the first half is this app's."""


@dataclass(frozen=True)
class ServiceInfo:
    """A service's name, the degradation level of its loss, and the functions lost and kept."""

    name: str
    level: int = levels.DEGRADED
    loses: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


def pending() -> list[QuerySet[Any]]:
    """Return the pending work: breakers that aren't closed, probes that fail, and active causes."""
    return [
        BreakerState.objects.exclude(state="closed"),
        Probe.objects.filter(is_away=True),
        services.standing(),
    ]


@transaction.atomic
def report_causes(now: datetime) -> bool:
    """Report the present causes; return True if that changed anything.

    Only one run at a time reports: an older reading must not replace a newer one.
    """
    if not try_lock():
        return False
    found, away = unhealthy.find_unhealthy(now).values(), _away_services()
    slugs = {one.callee for one in found} | set(away)
    before = {one.what for one in services.known()}
    return services.report(find_causes(found, away, _service_infos(slugs), before), now)


def find_causes(
    found: Iterable[UnhealthyDependency],
    away: Collection[str],
    registered: Mapping[str, ServiceInfo],
    before: Collection[str],
) -> list[Cause]:
    """The worst causes, 50 at most. `before` are those that stood last, by what they are of."""
    stand = [_service_cause(slug, registered.get(slug) or ServiceInfo(slug)) for slug in away] + [
        _breaker_cause(
            one, registered.get(one.callee) or ServiceInfo(one.callee), one.callee in away
        )
        for one in found
        if one.is_weighty and _is_cause(one, before)
    ]
    stand.sort(key=lambda one: (-one.level, one.what))
    more = stand[MAX_CAUSES - 1 :]
    if len(more) > 1:
        summed = Cause(more[0].level, "more", "More breakers are open than these.")
        stand[MAX_CAUSES - 1 :] = [summed]
    return stand


def try_lock() -> bool:
    """Try to take the advisory lock of these runs until the end of the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", ADVISORY_LOCK)
        (is_taken,) = cursor.fetchone()
    return bool(is_taken)


def _is_cause(one: UnhealthyDependency, before: Collection[str]) -> bool:
    """Return True if the breaker is open, or was a cause before and has not recovered.

    It has not recovered while it is half-open, or while no instance has reported since it was open.
    """
    return one.open > 0 or (one.name in before and (one.half_open > 0 or one.is_unheard))


def _service_cause(slug: str, known: ServiceInfo) -> Cause:
    """Named apart from our own stores: a customer's `redis` is not ours."""
    text = f"{known.name} does not answer when it is asked."
    return Cause(known.level, f"service:{slug}", text, fails=known.loses, works=known.keeps)


def _breaker_cause(one: UnhealthyDependency, known: ServiceInfo, is_away: bool) -> Cause:
    grave = is_away or one.share >= GRAVE_SHARE
    level = known.level if grave else min(known.level, levels.DEGRADED)
    return Cause(level, one.name, _breaker_text(one), fails=known.loses, works=known.keeps)


def _breaker_text(one: UnhealthyDependency) -> str:
    """Describe the cause, alike for open and half-open, so that flapping causes no new messages."""
    if one.is_unheard:
        return f"The breaker of {one.name} was open when its instances were last heard of."
    where = "" if one.share >= GRAVE_SHARE else " in some instances"
    return f"The breaker of {one.name} is not closed{where}: calls are refused or fall back."


def _away_services() -> list[str]:
    asked = Probe.objects.filter(is_away=True).exclude(service__probe_url="")
    return list(asked.order_by("pk").values_list("pk", flat=True))


def _service_infos(slugs: Collection[str]) -> dict[str, ServiceInfo]:
    found = Service.objects.filter(pk__in=slugs) if slugs else ()
    return {
        one.pk: ServiceInfo(one.name, one.level, tuple(one.loses), tuple(one.keeps))
        for one in found
    }
