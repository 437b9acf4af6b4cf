"""Looking at all rules: alarms begin, go on and end, and each is told of once."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from breakers import turns
from breakers.alarms import rules, telling
from breakers.alarms.readings import LATELY, measured
from breakers.alarms.rules import WINDOW, Moves, Reading, Standing
from breakers.models import Alarm
from controlplane.core.models import Tick

MOST_BEGUN = 2000
"""At one look; the others follow at the next."""
TICK = "breakers.alarms"
OVERLAP = timedelta(seconds=15)
"""A turn is noted when it ends, so what came while it ran is looked at again."""

_GO_ON = """
    UPDATE breakers_alarm AS alarm SET seen_at = %(now)s, value = seen.value
    FROM unnest(%(ids)s::bigint[], %(values)s::float[]) AS seen (id, value)
    WHERE alarm.id = seen.id
"""


@transaction.atomic
def look(now: datetime) -> int:
    """Begin and end alarms by what is reported now; returns how many that was. One looks at a
    time: who comes meanwhile does nothing."""
    if not turns.alone("alarms"):
        return 0
    standing = [
        Standing(one.pk, (one.rule, one.subject), one.seen_at)
        for one in Alarm.objects.filter(closed_at__isnull=True, rule__in=rules.ALL)
    ]
    found = rules.moves(measured(now, since=_last_look(now)), standing, now)
    _go_on(found.go_on, now)
    begun = _begin(found, now)
    Alarm.objects.filter(pk__in=found.end).update(closed_at=now)
    telling.turn(now)
    return len(begun) + len(found.end)


def _last_look(now: datetime) -> datetime:
    """Since when breakers that opened are looked for: a turn that was missed misses none of them,
    as far as rates look back."""
    last = Tick.objects.filter(name=TICK).values_list("ran_at", flat=True).first()
    wanted = now - LATELY if last is None else min(last - OVERLAP, now - LATELY)
    return max(wanted, now - WINDOW)


def _go_on(seen: Mapping[int, Reading], now: datetime) -> None:
    if not seen:
        return
    values: dict[str, Any] = {
        "ids": [*seen],
        "values": [float(one.value) for one in seen.values()],
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(_GO_ON, values)


def _begin(found: Moves, now: datetime) -> list[Alarm]:
    new = found.begin[:MOST_BEGUN]
    rows = [
        Alarm(
            rule=one.rule.name,
            subject=one.subject,
            severity=one.rule.severity,
            value=one.value,
            limit=one.rule.limit,
            evidence={**one.evidence, "said": one.said},
            since=now,
            seen_at=now,
        )
        for one in new
    ]
    return Alarm.objects.bulk_create(rows)
