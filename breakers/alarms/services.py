"""Looking at all rules: alarms begin, go on and end, and each is told of once."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from breakers import turns
from breakers.alarms import rules, telling
from breakers.alarms.readings import measured
from breakers.alarms.rules import Moves, Reading, Standing
from breakers.models import Alarm

MOST_BEGUN = 2000
"""At one look; the others follow at the next."""
LONGEST_SUBJECT = 250

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
    open_ones = {
        one.pk: one for one in Alarm.objects.filter(closed_at__isnull=True, rule__in=rules.ALL)
    }
    standing = [
        Standing(one.pk, (one.rule, one.subject), one.seen_at) for one in open_ones.values()
    ]
    found = rules.moves(measured(now), standing, now)
    _go_on(found.go_on, now)
    begun = _begin(found, now)
    ended = [open_ones[pk] for pk in found.end]
    Alarm.objects.filter(pk__in=found.end).update(closed_at=now)
    telling.begun(begun, now)
    telling.ended(ended, now)
    return len(begun) + len(ended)


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
    alone = telling.are_told_alone(len(new), now)
    rows = [
        Alarm(
            rule=one.rule.name,
            subject=one.subject[:LONGEST_SUBJECT],
            severity=one.rule.severity,
            value=one.value,
            limit=one.rule.limit,
            evidence={**one.evidence, "said": one.said, "told_alone": alone},
            since=now,
            seen_at=now,
        )
        for one in new
    ]
    return Alarm.objects.bulk_create(rows)
