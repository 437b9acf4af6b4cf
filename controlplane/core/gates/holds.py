"""Holding ramps while something is wrong with a service that they let traffic back to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from controlplane.core.gates.models import Hold

CHECKED_WITHIN = timedelta(hours=1)
"""An instance that has not been heard of for so long checks nothing any more."""
MAX_TEXT_LENGTH = 500

# Which of these switches the instances of these services check.
_CHECKED = """
    SELECT DISTINCT asked.switch, i.service
    FROM core_instance i, unnest(%(switches)s::text[]) AS asked (switch)
    WHERE i.service = ANY(%(services)s) AND i.heard_at >= %(since)s AND i.checks ? asked.switch
"""


@dataclass(frozen=True)
class Way:
    """What lets traffic back, as far as holds look at it: a switch, and the SLOs that its plan is
    gated on."""

    switch: str
    slos: frozenset[str] = frozenset()


def place(
    *, key: str, service: str, slos: Collection[str], why: str, path: str, now: datetime
) -> None:
    """Hold the ramps of a service from now on, in the caller's transaction; one of the same `key`
    stays as it is."""
    row = Hold(
        key=key,
        service=service,
        slos=sorted(slos),
        why=why[:MAX_TEXT_LENGTH],
        path=path[:MAX_TEXT_LENGTH],
        since=now,
    )
    Hold.objects.bulk_create([row], ignore_conflicts=True)


def release(keys: Collection[str]) -> int:
    """What placed these is over, in the caller's transaction; returns how many there were."""
    return Hold.objects.filter(key__in=list(keys)).delete()[0]


def standing() -> list[Hold]:
    """What holds ramps now, the oldest first."""
    return list(Hold.objects.order_by("since", "pk"))


def in_the_way(of: Sequence[Hold], ways: Sequence[Way], now: datetime) -> Mapping[str, list[Hold]]:
    """Which of these holds stand in the way of each of these ways, by its switch: their service
    checks the switch, or has an SLO that the plan is gated on."""
    checked = _checked({one.switch for one in ways}, {one.service for one in of}, now)
    found: dict[str, list[Hold]] = {}
    for way in ways:
        for hold in of:
            if (way.switch, hold.service) in checked or way.slos.intersection(hold.slos):
                found.setdefault(way.switch, []).append(hold)
    return found


def _checked(
    switches: Collection[str], services: Collection[str], now: datetime
) -> set[tuple[str, str]]:
    given: dict[str, Any] = {
        "switches": sorted(switches),
        "services": sorted(services),
        "since": now - CHECKED_WITHIN,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CHECKED, given)
        return set(cursor.fetchall())
