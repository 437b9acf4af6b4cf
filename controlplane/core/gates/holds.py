"""Holds: ramps stay at their step while something is wrong with a service behind their switch."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from .models import Hold

CHECKED_WITHIN = timedelta(hours=1)
"""An instance that was last heard from longer ago checks no switch any more."""
MAX_TEXT_LENGTH = 500

# The switches among these that instances of these services check.
_CHECKED = """
    SELECT DISTINCT asked.switch, i.service
    FROM core_instance i, unnest(%(switches)s::text[]) AS asked (switch)
    WHERE i.service = ANY(%(services)s) AND i.heard_at >= %(since)s AND i.checks ? asked.switch
"""


@dataclass(frozen=True)
class HoldTarget:
    """The part of a ramp that holds apply to: its switch, and the SLOs that its gates name."""

    switch: str
    slos: frozenset[str] = frozenset()


def place_hold(
    *, key: str, service: str, slos: Collection[str], why: str, path: str, now: datetime
) -> None:
    """Hold the ramps of a service, in the caller's transaction; a hold of the same `key` stays."""
    row = Hold(
        key=key,
        service=service,
        slos=sorted(slos),
        why=why[:MAX_TEXT_LENGTH],
        path=path[:MAX_TEXT_LENGTH],
        since=now,
    )
    Hold.objects.bulk_create([row], ignore_conflicts=True)


def release_holds(keys: Collection[str]) -> int:
    """Delete the holds of these keys, in the caller's transaction; return their number."""
    return Hold.objects.filter(key__in=list(keys)).delete()[0]


def list_holds() -> list[Hold]:
    """Return every hold, the oldest first."""
    return list(Hold.objects.order_by("since", "pk"))


def find_blocking_holds(
    holds: Sequence[Hold], targets: Sequence[HoldTarget], now: datetime
) -> Mapping[str, list[Hold]]:
    """Return by switch the holds that apply to each target.

    A hold applies if its service checks the switch or has an SLO that the plan is gated on.
    """
    checked = _find_checked({one.switch for one in targets}, {one.service for one in holds}, now)
    found: dict[str, list[Hold]] = {}
    for target in targets:
        for hold in holds:
            if (target.switch, hold.service) in checked or target.slos.intersection(hold.slos):
                found.setdefault(target.switch, []).append(hold)
    return found


def _find_checked(
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
