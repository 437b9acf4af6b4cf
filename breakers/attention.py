"""What breakers and dependencies have waiting for a person."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Q

from breakers import telling
from breakers.alarms import rules
from breakers.alarms import telling as of_alarms
from breakers.conditions import WEIGHTY
from breakers.models import Alarm, Override, Probe
from breakers.probes.services import GRAVE_LEVEL
from breakers.services import overrides
from breakers.services.overrides import Acknowledged
from breakers.states.standing import by_name
from controlplane.core.durations import readable
from controlplane.core.instances.queries import HEARD_WITHIN
from controlplane.core.sections import Waiting

MOST = 100
LONG = timedelta(hours=1)
SOON = timedelta(minutes=10)
HEARD_BY_THEN = timedelta(seconds=60)
"""So long after an override began, whoever still does not go by it is told of."""
NAMED = 3

# The few that are open are found first, by an index of their own.
_OPEN = """
    SELECT d.caller, d.callee, d.criticality,
           count(*) FILTER (WHERE s.state = 'open'), count(*),
           min(coalesce(s.since, s.changed_at)) FILTER (WHERE s.state = 'open')
    FROM breakers_breakerstate s
    JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
    JOIN breakers_dependency d ON d.id = s.dependency_id
    WHERE i.reported_at >= %(fresh)s AND d.removed_at IS NULL
      AND d.criticality = ANY(%(weighty)s) AND s.dependency_id = ANY(ARRAY(
          SELECT DISTINCT dependency_id FROM breakers_breakerstate WHERE state = 'open'
      ))
    GROUP BY d.id HAVING bool_or(s.state = 'open')
    ORDER BY d.criticality, 6 LIMIT %(most)s
"""


def open_breakers(now: datetime) -> Sequence[Waiting]:
    """Open breakers of critical dependencies, critical; of high ones, a warning."""
    given: dict[str, Any] = {"fresh": now - HEARD_WITHIN, "weighty": [*WEIGHTY], "most": MOST}
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, given)
        rows = cursor.fetchall()
    return [
        Waiting(
            kind="breaker_open",
            severity="critical" if criticality == "critical" else "warning",
            title=f"The breaker of {caller}->{callee} is open",
            detail=f"In {is_open:,} of {instances:,} instances; the dependency is {criticality}.",
            path=f"{telling.BOARD}{caller}/{callee}/",
            since=min(since, now),
        )
        for caller, callee, criticality, is_open, instances, since in rows
    ]


def forced(now: datetime) -> Sequence[Waiting]:
    """Overrides that last long, end soon, or are not gone by everywhere. One that ends soon may
    be there for a good reason still: whoever set it should say so in time."""
    live = Override.objects.filter(ended_at__isnull=True).select_related("dependency")
    found = list(live.order_by("set_at", "pk")[:MOST])
    heard = overrides.acknowledgements([(one.dependency.caller, one.version) for one in found], now)
    return [
        _override(one, said, by, now)
        for one, by in zip(found, heard, strict=True)
        if (said := _noteworthy(one, by, now))
    ]


def alarms(now: datetime) -> Sequence[Waiting]:
    """Alarms that are open, warnings first, but for those that are told as open breakers."""
    rows = Alarm.objects.filter(closed_at__isnull=True).order_by("-severity", "since", "pk")
    some = list(rows[: 2 * MOST])
    tripped = {one.subject for one in some if one.rule == rules.OPEN.name}
    told = {one.name for one in by_name(tripped) if one.criticality in WEIGHTY}
    shown = [one for one in some if one.rule != rules.OPEN.name or one.subject not in told]
    return [
        Waiting(
            kind="breaker_alarm",
            severity=one.severity,
            title=one.evidence.get("said") or f"{one.rule} of {one.subject}",
            detail=_advice(one),
            path=of_alarms.path(one),
            since=min(one.since, now),
        )
        for one in shown[:MOST]
    ]


def away(now: datetime) -> Sequence[Waiting]:
    """Services and stores that do not answer their probes, and those that may not be asked."""
    refused = Q(since__isnull=True, failures=0) & ~Q(error="")
    rows = Probe.objects.filter(Q(is_away=True) | refused).exclude(service__probe_url="")
    return [
        Waiting(
            kind="probe_away",
            severity=_gravity(one),
            title=f"{one.service.name} {'does not answer' if one.is_away else 'is not asked'}",
            detail=f"{one.service.probe_url}: {one.error}",
            path="/breakers/infrastructure/",
            since=min(one.since or one.checked_at or now, now),
        )
        for one in rows.select_related("service").order_by("-is_away", "-service__level", "pk")[
            :MOST
        ]
    ]


def _gravity(probe: Probe) -> str:
    if not probe.is_away:
        return "info"
    return "critical" if probe.service.level >= GRAVE_LEVEL else "warning"


def _noteworthy(one: Override, by: Acknowledged, now: datetime) -> list[str]:
    said = []
    if not by.by_all and now - one.set_at >= HEARD_BY_THEN:
        named = ", ".join(by.stragglers[:NAMED])
        behind = by.instances - by.applied
        rest = f" and {behind - NAMED:,} more" if behind > NAMED else ""
        said.append(f"{by.applied:,} of {by.instances:,} instances go by it, not {named}{rest}.")
    if one.expires_at - now <= SOON < one.expires_at - one.set_at:
        said.append("It ends soon.")
    if now - one.set_at > LONG:
        said.append(f"It has stood for {readable(now - one.set_at)}.")
    return said


def _override(one: Override, said: Sequence[str], by: Acknowledged, now: datetime) -> Waiting:
    who = f"{one.set_by_type}:{one.set_by_name}"
    heard = by.by_all or now - one.set_at < HEARD_BY_THEN
    return Waiting(
        kind="override",
        severity="info" if heard and now - one.set_at <= LONG else "warning",
        title=f"{one.dependency.name} is overridden: {one.mode}",
        detail=f"{' '.join(said)} Set by {who}: {one.reason}",
        path=telling.page(one.dependency),
        since=min(one.set_at, now),
        due_at=one.expires_at,
    )


def _advice(one: Alarm) -> str:
    if one.rule in rules.ALL:
        return rules.ALL[one.rule].to_do
    done, why = one.evidence.get("done"), one.evidence.get("why")
    if not done:
        return "Its policy acts if that lasts."
    return f"By its policy: {done}. {why or ''}".strip()
