"""Blast radius: who checks a switch, how often, and what else stops part of the same traffic.

It names who calls, from reports and from `/check`: whoever merely polls the snapshot is no caller.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection

from controlplane.core.canonical import timestamp
from controlplane.core.instances.queries import MOST, Caller, callers
from switches.evaluate import GLOBAL_ID
from switches.models import Episode

WITHIN = timedelta(hours=1)
CALLERS_NAMED = 200
OVERLAPPING_NAMED = 50
CHECKED_BY = """
    SELECT DISTINCT entry.key FROM core_instance, jsonb_each(checks) AS entry
    WHERE id = ANY(%s) AND entry.value ->> 'seen' >= %s
"""


@dataclass(frozen=True)
class Service:
    """What the instances of one service do together."""

    id: str
    instances: int
    calls_per_second: float
    last_seen: datetime


@dataclass(frozen=True)
class Overlap:
    """Another switch that is not released and stops part of the same traffic."""

    id: str
    state: str
    reason: str
    allow_percent: Decimal


@dataclass(frozen=True)
class Blast:
    """Who is hit when a switch is engaged: the busiest 200 instances, and sums over all of them."""

    switch: str
    instances: tuple[Caller, ...]
    instances_total: int
    services: tuple[Service, ...]
    calls_per_second: float
    last_seen: datetime | None
    overlapping: tuple[Overlap, ...]

    @property
    def is_global(self) -> bool:
        return self.switch == GLOBAL_ID


def blast(switch_id: str, now: datetime) -> Blast:
    """Who checked the switch within the last hour; for `global:all`, who checked any switch.

    A switch that nobody knows has no callers.
    """
    found, total = callers(
        None if switch_id == GLOBAL_ID else switch_id, now, within=WITHIN, most=MOST
    )
    return Blast(
        switch=switch_id,
        instances=tuple(found[:CALLERS_NAMED]),
        instances_total=total,
        services=by_service(found),
        calls_per_second=sum(caller.calls_per_second for caller in found),
        last_seen=max((caller.last_seen for caller in found), default=None),
        overlapping=_overlapping(switch_id, found, now),
    )


def by_service(found: Sequence[Caller]) -> tuple[Service, ...]:
    """The callers summed up by service, the busiest first."""
    grouped: dict[str, list[Caller]] = defaultdict(list)
    for caller in found:
        grouped[caller.service].append(caller)
    services = [
        Service(
            id=service,
            instances=len(them),
            calls_per_second=sum(one.calls_per_second for one in them),
            last_seen=max(one.last_seen for one in them),
        )
        for service, them in grouped.items()
    ]
    return tuple(sorted(services, key=lambda one: (-one.calls_per_second, one.id)))


def _overlapping(switch_id: str, found: Sequence[Caller], now: datetime) -> tuple[Overlap, ...]:
    """The global switch stops part of everything; others, what the same instances check too."""
    episodes = Episode.objects.filter(ended_at__isnull=True).exclude(switch_id=switch_id)
    if switch_id != GLOBAL_ID:
        episodes = episodes.filter(switch_id__in={GLOBAL_ID, *_checked_by(found, now)})
    return tuple(
        Overlap(episode.switch_id, episode.state.value, episode.reason, episode.allow_percent)
        for episode in episodes.order_by("switch_id")[:OVERLAPPING_NAMED]
    )


def _checked_by(found: Sequence[Caller], now: datetime) -> set[str]:
    if not found:
        return set()
    with connection.cursor() as cursor:
        # Moments as they are stored sort as text.
        cursor.execute(CHECKED_BY, [[one.id for one in found], timestamp(now - WITHIN)])
        return {row[0] for row in cursor.fetchall()}
