"""Holds, which keep ramps at their step while a service that checks the switch has a problem."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from controlplane.core.sql import fetch_all

from .models import Hold

CHECKED_WITHIN = timedelta(hours=1)
"""Instances without a report for longer than this are ignored."""
MAX_TEXT_LENGTH = 500

_CHECKED = """
    SELECT DISTINCT requested.switch, i.service
    FROM core_instance i, unnest(%(switches)s::text[]) AS requested (switch)
    WHERE i.service = ANY(%(services)s) AND i.heard_at >= %(since)s AND i.checks ? requested.switch
"""


@dataclass(frozen=True)
class HoldTarget:
    """A ramp that holds may apply to: its switch, and the SLOs in its gates."""

    switch: str
    slos: frozenset[str] = frozenset()


def place_hold(
    *, key: str, service: str, slos: Collection[str], why: str, path: str, now: datetime
) -> None:
    """Place a hold on the ramps of a service, in the caller's transaction.

    An existing hold with the same `key` stays unchanged.
    """
    texts = {"why": why[:MAX_TEXT_LENGTH], "path": path[:MAX_TEXT_LENGTH]}
    row = Hold(key=key, service=service, slos=sorted(slos), **texts, since=now)
    Hold.objects.bulk_create([row], ignore_conflicts=True)


def release_holds(keys: Collection[str]) -> int:
    """Delete the holds with these keys, in the caller's transaction; return their number."""
    return Hold.objects.filter(key__in=list(keys)).delete()[0]


def list_holds() -> list[Hold]:
    return list(Hold.objects.order_by("since", "pk"))


def find_blocking_holds(
    holds: Sequence[Hold], targets: Sequence[HoldTarget], now: datetime
) -> Mapping[str, list[Hold]]:
    """Return the holds that apply to each ramp of `targets`, by switch.

    A hold applies if an instance of its service checks the ramp's switch, or if one of the hold's
    SLOs is in the ramp's gates.
    """
    parameters: dict[str, Any] = {
        "switches": sorted({target.switch for target in targets}),
        "services": sorted({hold.service for hold in holds}),
        "since": now - CHECKED_WITHIN,
    }
    checked = set(fetch_all(_CHECKED, parameters))
    blocking = defaultdict(list)
    for target, hold in product(targets, holds):
        if (target.switch, hold.service) in checked or target.slos.intersection(hold.slos):
            blocking[target.switch].append(hold)
    return dict(blocking)
