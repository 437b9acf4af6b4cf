"""For whoever has one thumb and no time: switches likely to be meant, and reasons ready to send.

A prepared reason still says something: what was seen, and since when. Only what is known is
claimed; whoever presses it chooses which of them is true.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import connection
from django.db.models import Max
from django.utils import timezone

from controlplane.core.canonical import timestamp
from controlplane.core.errors import InvalidInput
from controlplane.core.instances import rates
from switches.blast import WITHIN
from switches.models import Episode, Switch
from switches.scopes import GLOBAL
from switches.services.register import find

SHOWN = 6
RECENTLY = timedelta(days=90)
MAX_REPEATED_REASON_LENGTH = 300  # characters of an earlier reason that still reads as a button
SEEN = (
    "Errors or timeouts seen at {at}; cause not found yet",
    "Wrong answers or wrong amounts, reported by users at {at}",
    "Load or spending runs away, seen at {at}",
    "Data exposure or abuse suspected at {at}",
)
BEFORE = "stopped before"
CHECKED_MOST = 20
CHECKED = """
    SELECT entry.key, entry.value::text FROM core_instance, jsonb_each(checks) AS entry
    WHERE entry.value ->> 'seen' >= %s
"""


@dataclass(frozen=True)
class Likely:
    """A released switch, and what speaks for it."""

    switch: Switch
    why: str


def at_hand(asked: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """For the form as it is opened: with no switch named yet, those likely to be meant; with one
    that is released, reasons. The global switch is confirmed by typing, so it has none."""
    scope, key = asked["scope"], asked["key"]
    if not key:
        return {"likely": likely(now)}
    try:
        switch = find(scope, key)
    except InvalidInput:
        return {}
    if scope == GLOBAL.name or asked["reason"] or (switch and switch.episode):
        return {}
    return {"prepared": reasons(f"{scope}:{key}", now)}


def likely(now: datetime) -> Sequence[Likely]:
    """Those checked now, the busiest first, then those stopped lately, the last first; what was
    undone was a mistake. Never the global switch: that one is asked for by name."""
    stopped = (
        Episode.objects.filter(engaged_at__gte=now - RECENTLY)
        .exclude(switch__scope=GLOBAL.name)
        .exclude(ended_how=Episode.End.UNDONE)
    )
    latest = stopped.values("switch_id").annotate(last=Max("engaged_at")).order_by("-last")
    before = [one["switch_id"] for one in latest[: 3 * SHOWN]]
    why = dict.fromkeys(_checked(now), "checked now")
    for switch_id in before:
        why[switch_id] = f"{why[switch_id]}, {BEFORE}" if switch_id in why else BEFORE
    known = Switch.objects.with_open_episode().in_bulk(list(why))
    found = [
        Likely(known.get(one) or _unknown(one), reason)
        for one, reason in why.items()
        if not one.startswith(f"{GLOBAL.name}:")
    ]
    return [one for one in found if one.switch.episode is None][:SHOWN]


def reasons(switch_id: str, now: datetime) -> Sequence[str]:
    """What one may have seen, in the person's own time; an earlier reason of this switch first."""
    local = timezone.localtime(now)
    said = [reason.format(at=f"{local:%H:%M %Z}") for reason in SEEN]
    last = Episode.objects.filter(switch_id=switch_id).order_by("-id").first()
    if last and now - last.engaged_at < RECENTLY and len(last.reason) <= MAX_REPEATED_REASON_LENGTH:
        said.insert(0, f"Again: {last.reason.removeprefix('Again: ')}")
    return said


def _checked(now: datetime) -> Sequence[str]:
    with connection.cursor() as cursor:
        cursor.execute(CHECKED, [timestamp(now - WITHIN)])
        rows = cursor.fetchall()
    per_second: dict[str, float] = defaultdict(float)
    for switch_id, entry in rows:
        per_second[switch_id] += rates.per_second(orjson.loads(entry), now)
    busiest = sorted(per_second, key=lambda one: (-per_second[one], one))
    return busiest[:CHECKED_MOST]


def _unknown(switch_id: str) -> Switch:
    scope, _, key = switch_id.partition(":")
    return Switch(id=switch_id, scope=scope, key=key)
