"""What is wrong by what instances report and probes find: the causes of degradation."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from breakers import names
from breakers.models import Probe, Service
from controlplane.core.degradation import levels, services
from controlplane.core.degradation.levels import Cause
from controlplane.core.instances.queries import HEARD_WITHIN

WEIGHTY = ("critical", "high")
"""Criticalities of dependencies whose open breakers degrade the installation."""
MOST_CAUSES = 50

_HOT = """
    SELECT d.caller, d.callee, bool_or(s.state = 'open')
    FROM breakers_breakerstate s
    JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
    JOIN breakers_dependency d ON d.id = s.dependency_id
    WHERE s.state <> 'closed' AND i.reported_at >= %(fresh)s
      AND d.criticality = ANY(%(weighty)s) AND d.removed_at IS NULL
    GROUP BY d.id ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Failing:
    """A weighty dependency with a fresh breaker that is not closed; half-open if none is open."""

    caller: str
    callee: str
    is_open: bool


@dataclass(frozen=True)
class Known:
    """What the registry says of a service: its name, the level of its loss, and what that does."""

    name: str
    level: int = levels.DEGRADED
    loses: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


def look(now: datetime) -> bool:
    """Report the causes that there are now; whether that changed anything."""
    found, away = failing(now), _away()
    slugs = {one.callee for one in found} | set(away)
    before = {one.what for one in services.known()}
    return services.report(causes(found, away, _registered(slugs), before), now)


def failing(now: datetime) -> list[Failing]:
    """Weighty dependencies with a fresh breaker that is not closed, by name. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_HOT, {"fresh": now - HEARD_WITHIN, "weighty": [*WEIGHTY]})
        return [Failing(*row) for row in cursor.fetchall()]


def causes(
    found: Sequence[Failing],
    away: Collection[str],
    registered: Mapping[str, Known],
    before: Collection[str],
) -> list[Cause]:
    """The worst causes, 50 at most. A breaker that was open and is half-open now still is one: it
    only tries. `before` are the causes that stood last, by what they are of."""
    stand = [_of_service(slug, registered.get(slug) or Known(slug)) for slug in away] + [
        _of_breaker(one, registered.get(one.callee) or Known(one.callee))
        for one in found
        if one.is_open or names.dependency(one.caller, one.callee) in before
    ]
    stand.sort(key=lambda one: (-one.level, one.what))
    more = stand[MOST_CAUSES:]
    if more:
        stand[MOST_CAUSES:] = [Cause(more[0].level, "more", "More breakers are open than these.")]
    return stand


def _of_service(slug: str, known: Known) -> Cause:
    text = f"{known.name} does not answer when it is asked."
    return Cause(known.level, slug, text, fails=known.loses, works=known.keeps)


def _of_breaker(one: Failing, known: Known) -> Cause:
    name = names.dependency(one.caller, one.callee)
    text = f"The breaker of {name} is open: its calls are refused or fall back."
    return Cause(known.level, name, text, fails=known.loses, works=known.keeps)


def _away() -> list[str]:
    asked = Probe.objects.filter(is_away=True).exclude(service__probe_url="")
    return list(asked.order_by("pk").values_list("pk", flat=True))


def _registered(slugs: Collection[str]) -> dict[str, Known]:
    found = Service.objects.filter(pk__in=slugs) if slugs else ()
    return {one.pk: Known(one.name, one.level, tuple(one.loses), tuple(one.keeps)) for one in found}
