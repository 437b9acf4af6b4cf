"""What the console asks about instances: who is there, how soon they were told, who checks what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from controlplane.core.instances import rates
from controlplane.core.instances.models import Instance

HEARD_WITHIN = timedelta(seconds=30)
MOST = 10_000
EVERY_CALL = "global:all"
"""The switch that bears on every call."""

DELAYS = """
    SELECT c.id,
           percentile_disc(0.5) WITHIN GROUP (ORDER BY told.ms),
           percentile_disc(0.99) WITHIN GROUP (ORDER BY told.ms),
           count(told.ms)
    FROM unnest(%(ids)s::text[], %(versions)s::bigint[], %(times)s::timestamptz[])
         AS c (id, version, committed_at)
    LEFT JOIN LATERAL (
        SELECT greatest(0, round(extract(epoch FROM first.at - c.committed_at) * 1000))::bigint ms
        FROM (
            SELECT a.instance, min(a.acknowledged_at) AS at
            FROM core_acknowledgement a
            WHERE a.epoch = %(epoch)s AND a.version >= c.version
              AND a.acknowledged_at >= c.committed_at - interval '5 seconds'
              AND a.acknowledged_at <= c.committed_at + interval '10 minutes'
            GROUP BY a.instance
        ) first
        LEFT JOIN core_instance i
               ON i.id = first.instance
              AND i.started_at > c.committed_at + interval '5 seconds'
              AND i.started_at <= first.at
        WHERE i.id IS NULL
    ) told ON true
    GROUP BY c.id
"""
CALLERS = """
    SELECT id, service, jsonb_build_object(%(switch)s::text, checks -> %(switch)s)::text
    FROM core_instance WHERE checks ? %(switch)s
"""
CALLERS_OF_ANY = "SELECT id, service, checks::text FROM core_instance WHERE checks <> '{}'"


@dataclass(frozen=True)
class Heard:
    """An instance that is there, and what it said it applies; None if it said nothing."""

    id: str
    service: str
    epoch: UUID | None
    version: int | None
    heard_at: datetime


@dataclass(frozen=True)
class Change:
    """The last published change of the switch `id`, and when it was committed."""

    id: str
    version: int
    committed_at: datetime


@dataclass(frozen=True)
class Delays:
    """How long after the commit instances said they apply it; None when nobody has said so.

    `measured` is the number of instances this stands on.
    """

    p50_ms: int | None
    p99_ms: int | None
    measured: int


@dataclass(frozen=True)
class Caller:
    """An instance that checks `switch`, how often over the last 60 s, and when last."""

    id: str
    service: str
    switch: str
    calls_per_second: float
    blocked_per_second: float
    last_seen: datetime


def heard(now: datetime) -> list[Heard]:
    """The instances heard from within 30 s, by id; at most :data:`MOST`."""
    rows = (
        Instance.objects.filter(heard_at__gte=now - HEARD_WITHIN)
        .order_by("id")
        .values_list("id", "service", "applied_epoch", "applied_version", "heard_at")[:MOST]
    )
    return [
        Heard(name, service, epoch, version, at)
        for name, service, epoch, version, at in rows
        if at is not None
    ]


def delays(epoch: UUID, changes: Sequence[Change]) -> dict[str, Delays]:
    """For each change, by id: its delays over all instances that said they apply it in time.

    An instance's delay runs from the commit to its first word, within 10 minutes, that it applies
    that version or a later one. Percentiles are measured values (nearest rank). An acknowledgement
    may seem a little earlier than the commit, by clocks' error: that is a delay of 0. An instance
    known to have started 5 s or more after the commit was never told of it, and does not count.
    """
    asked: dict[str, Any] = {
        "epoch": epoch,
        "ids": [change.id for change in changes],
        "versions": [change.version for change in changes],
        "times": [change.committed_at for change in changes],
    }
    if not changes:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(DELAYS, asked)
        return {row[0]: Delays(*row[1:]) for row in cursor.fetchall()}


def callers(
    switch_id: str | None,
    now: datetime,
    *,
    within: timedelta = timedelta(hours=1),
    most: int = 200,
) -> tuple[list[Caller], int]:
    """The `most` busiest that checked the switch within that time, and how many did in all.

    For None: of any switch, one row per instance, as callers of `global:all`. An instance that
    counts nothing under that id is taken by the sum of its switches, where a call that asks for two
    counts twice.
    """
    found = [caller for caller in _callers(switch_id, now) if caller.last_seen >= now - within]
    found.sort(key=lambda caller: (-caller.calls_per_second, caller.id))
    return found[:most], len(found)


def _callers(switch_id: str | None, now: datetime) -> Iterator[Caller]:
    with connection.cursor() as cursor:
        if switch_id is None:
            cursor.execute(CALLERS_OF_ANY)
        else:
            cursor.execute(CALLERS, {"switch": switch_id})
        rows = cursor.fetchall()
    for instance, service, checks in rows:
        by_switch: dict[str, rates.Entry] = orjson.loads(checks)
        # Whoever counts every call under the global switch would else count it once more by name.
        entries = [by_switch[EVERY_CALL]] if EVERY_CALL in by_switch else [*by_switch.values()]
        yield Caller(
            id=instance,
            service=service,
            switch=switch_id or EVERY_CALL,
            calls_per_second=sum(rates.per_second(entry, now) for entry in entries),
            blocked_per_second=sum(rates.blocked_per_second(entry, now) for entry in entries),
            last_seen=max(rates.seen(entry) for entry in entries),
        )
