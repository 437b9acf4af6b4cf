"""Switches of the same key in another scope: what somebody may mean who names one that nobody
checks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
from django.db import connection

from controlplane.core.canonical import timestamp
from controlplane.core.instances import rates
from controlplane.core.instances.queries import callers
from switches.blast import WITHIN
from switches.models import Switch
from switches.scopes import GLOBAL_ID, keyed_scopes

CHECKS = """
    SELECT entry.key, entry.value::text FROM core_instance, jsonb_each(checks) AS entry
    WHERE checks ?| %(ids)s AND entry.key = ANY(%(ids)s) AND entry.value ->> 'seen' >= %(since)s
"""


@dataclass(frozen=True)
class Namesake:
    """`callers` is how many instances and tokens checked it within the last hour."""

    id: str
    scope: str
    key: str
    callers: int
    calls_per_second: float


def unchecked(switch_id: str, now: datetime, *, known: bool = False) -> Sequence[Namesake] | None:
    """None if anybody checked the switch within the last hour (`global:all`: any switch); else what
    may be meant instead.

    Those are the other scopes in which this key was checked, the busiest first; if it was in none,
    those in which it is known, while this one is not (`known`: the caller says that it is).
    """
    if switch_id == GLOBAL_ID:
        return None if callers(None, now, within=WITHIN, most=1)[1] else []
    key = switch_id.partition(":")[2]
    ids = [f"{scope.name}:{key}" for scope in keyed_scopes()]
    checks = _checks(ids, now)
    if switch_id in checks:
        return None
    if checks:
        found = [_namesake(one, rates_of) for one, rates_of in checks.items()]
        return sorted(found, key=lambda one: -one.calls_per_second)
    if known:
        return []
    present = set(Switch.objects.filter(pk__in=ids).values_list("pk", flat=True))
    return [] if switch_id in present else [_namesake(one, []) for one in ids if one in present]


def _checks(ids: Sequence[str], now: datetime) -> Mapping[str, Sequence[float]]:
    """The calls per second of each instance that checks one of these switches."""
    with connection.cursor() as cursor:
        cursor.execute(CHECKS, {"ids": list(ids), "since": timestamp(now - WITHIN)})
        rows = cursor.fetchall()
    found: dict[str, list[float]] = defaultdict(list)
    for switch_id, entry in rows:
        found[switch_id].append(rates.per_second(orjson.loads(entry), now))
    return found


def _namesake(switch_id: str, per_second: Sequence[float]) -> Namesake:
    scope, _, key = switch_id.partition(":")
    return Namesake(switch_id, scope, key, len(per_second), sum(per_second))
