"""Causes of degradation: breakers that are not closed and probes that fail.

A breaker counts if its dependency's criticality is critical or high, or its callee is a service of
this installation. If half of the instances are affected or the callee's probe fails, the cause has
the degradation level that is registered for the callee. Otherwise it has the level `DEGRADED`.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from controlplane.core import degradation_levels as levels
from controlplane.core.degradation import services
from controlplane.core.degradation_levels import Cause

from . import names
from .models import BreakerState, Probe, Service
from .states import unhealthy
from .states.unhealthy import UnhealthyDependency

MAX_CAUSES = 50
GRAVE_SHARE = 0.5
ADVISORY_LOCK = (0x5317, 2)
"""Keys of the advisory lock; the first one stands for this app."""


def list_pending() -> list[QuerySet[Any]]:
    """Return queries for the rows that :func:`report_causes` needs; without any, it need not run.

    They find breakers that are not closed, failing probes, and active causes.
    """
    return [
        BreakerState.objects.exclude(state="closed"),
        Probe.objects.filter(is_away=True),
        services.select_active(),
    ]


@transaction.atomic
def report_causes(now: datetime) -> bool:
    """Replace the active causes of degradation by the current ones; return True if they changed."""
    if not try_lock():
        return False
    found = unhealthy.find_unhealthy(now).values()
    probes = Probe.objects.filter(is_away=True).exclude(service__probe_url="").order_by("pk")
    away = list(probes.values_list("pk", flat=True))
    slugs = {one.callee for one in found} | set(away)
    registered = Service.objects.in_bulk(slugs) if slugs else {}
    before = {one.what for one in services.load_causes()}
    missing = before - {one.name for one in found}
    stopped = unhealthy.find_stopped(missing, now - services.HOLD_TIME)
    return services.report(find_causes(found, away, registered, before), now, ended=stopped)


def find_causes(
    found: Iterable[UnhealthyDependency],
    away: Collection[str],
    registered: Mapping[str, Service],
    before: Collection[str],
) -> list[Cause]:
    """Return the current causes of degradation, at most 50, the worst first.

    `found` are unhealthy dependencies, `away` slugs of services whose probe fails, and `registered`
    services by slug. `before` are the names of the causes reported until now: such a cause lasts
    while its breaker is half-open or not reported.
    """

    def service_of(slug: str) -> Service:
        return registered.get(slug) or Service(slug=slug, name=slug)

    causes = [
        _build_cause(
            service.level,
            f"service:{service.slug}",
            f"{service.name} does not respond to its probe.",
            service,
        )
        for service in map(service_of, away)
    ]
    for one in found:
        is_lasting = one.name in before and (one.half_open > 0 or one.is_unheard)
        if one.is_weighty and (one.open > 0 or is_lasting):
            causes.append(_breaker_cause(one, service_of(one.callee), one.callee in away))
    causes.sort(key=lambda one: (-one.level, one.what))
    more = causes[MAX_CAUSES - 1 :]
    if len(more) > 1:
        summed = Cause(more[0].level, "more", "More breakers are open than listed.")
        causes[MAX_CAUSES - 1 :] = [summed]
    return causes


def try_lock() -> bool:
    """Take an advisory lock, so that one process at a time reports; return False if it is taken."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", ADVISORY_LOCK)
        (is_taken,) = cursor.fetchone()
    return bool(is_taken)


def _breaker_cause(one: UnhealthyDependency, service: Service, is_away: bool) -> Cause:
    grave = is_away or one.share >= GRAVE_SHARE
    level = service.level if grave else min(service.level, levels.DEGRADED)
    where = "" if one.share >= GRAVE_SHARE else " in some instances"
    name = names.format_name(one.name)
    text = f"The breaker of {name} is not closed{where}: calls are rejected or fall back."
    if one.is_unheard:
        text = f"The breaker of {name} was open when its instances last reported."
    return _build_cause(level, one.name, text, service)


def _build_cause(level: int, name: str, text: str, service: Service) -> Cause:
    return Cause(level, name, text, fails=tuple(service.loses), works=tuple(service.keeps))
