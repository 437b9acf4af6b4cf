"""Queries about instances: the versions they apply and since when, and their checks.

An instance applies a version if it reported one that is published, of the present epoch; one that
reported anything else, or nothing, applies none.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID

import orjson
from django.db import connection

from controlplane.core.instances import rates
from controlplane.core.scopes import everything_id

HEARD_WITHIN = timedelta(seconds=30)
GONE_AFTER = timedelta(minutes=5)
"""An instance that is silent for longer counts as gone."""
"""The switch that bears on every call."""

APPLIES = """
    SELECT id, applied_epoch, applied_version, heard_at, heard_at >= %(there)s AS there,
           CASE WHEN applied_epoch = %(epoch)s AND applied_version <= %(newest)s
                THEN applied_version ELSE -1 END AS applied
    FROM core_instance WHERE heard_at >= %(gone)s
"""
TALLY = f"SELECT there, applied, count(*) FROM ({APPLIES}) said GROUP BY there, applied"  # noqa: S608
TALLY_AT_HEAD = """
    SELECT head.now, head.epoch, head.version, head.began_version, said.there, said.applied,
           count(said.there)
    FROM (SELECT clock_timestamp() AS now, epoch, version, began_version
          FROM switches_publication WHERE id = 1 OFFSET 0) head
    LEFT JOIN LATERAL (
        SELECT heard_at >= head.now - %s AS there,
               CASE WHEN applied_epoch = head.epoch AND applied_version <= head.version
                    THEN applied_version ELSE -1 END AS applied
        FROM core_instance WHERE heard_at >= head.now - %s
    ) said ON true
    GROUP BY 1, 2, 3, 4, 5, 6
"""
BEHIND = f"""
    SELECT id, applied_epoch, applied_version, heard_at FROM ({APPLIES}) said
    WHERE there AND applied < %(version)s ORDER BY applied, id LIMIT %(most)s
"""  # noqa: S608
SILENT = f"""
    SELECT id, applied_epoch, applied_version, heard_at FROM ({APPLIES}) said
    WHERE NOT there AND applied < %(version)s ORDER BY heard_at DESC, id LIMIT %(most)s
"""  # noqa: S608
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
            JOIN switches_publication p ON p.epoch = a.epoch AND p.version >= a.version
            WHERE a.epoch = %(epoch)s AND a.version >= c.version
              AND a.acknowledged_at >= c.committed_at - interval '5 seconds'
              AND a.acknowledged_at <= c.committed_at + interval '10 minutes'
            GROUP BY a.instance
        ) first
        JOIN core_instance i ON i.id = first.instance AND i.first_heard_at < c.committed_at
        WHERE NOT coalesce(i.started_at > c.committed_at + interval '5 seconds'
                           AND i.started_at <= first.at, false)
    ) told ON true
    GROUP BY c.id
"""
CALLERS = """
    SELECT id, service, jsonb_build_object(%(switch)s::text, checks -> %(switch)s)::text
    FROM core_instance WHERE checks ? %(switch)s
"""
CALLERS_OF_ANY = "SELECT id, service, checks::text FROM core_instance WHERE checks <> '{}'"


@dataclass(frozen=True)
class Head:
    """The published position: versions up to `version` of this epoch."""

    epoch: UUID
    version: int


@dataclass(frozen=True)
class Heard:
    """An instance, its last reported position (None: none), and when it was last heard from."""

    id: str
    epoch: UUID | None
    version: int | None
    heard_at: datetime


class Applied:
    """Cumulative counts of instances by applied version; -1 stands for none."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self._versions = sorted(counts)
        self._sums = [0, *accumulate(counts[version] for version in self._versions)]

    @property
    def total(self) -> int:
        return self._sums[-1]

    def below(self, version: int) -> int:
        """Return the number of instances that apply an older version than this, or none."""
        return self._sums[bisect_left(self._versions, version)]


@dataclass(frozen=True)
class Change:
    """The last published change of the switch `id`, and when it was committed."""

    id: str
    version: int
    committed_at: datetime


@dataclass(frozen=True)
class Delays:
    """Percentiles of the delay from commit to acknowledgement; None without acknowledgements.

    `measured` is the number of instances in the sample.
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


def tally(head: Head, now: datetime) -> tuple[Applied, Applied]:
    """Count the versions applied by live instances, and by recently silent ones.

    Live means heard from within 30 s; recently silent, within 5 minutes before that. One query.
    """
    with connection.cursor() as cursor:
        cursor.execute(TALLY, _since(head, now))
        return _applied(cursor.fetchall())


def tally_at_head() -> tuple[datetime, Head, int, Applied, Applied]:
    """Return the database's time, the published head, and the counts of :func:`tally`.

    The third value is the first version of the head's epoch. One query.
    """
    asked: list[Any] = [HEARD_WITHIN, GONE_AFTER]
    with connection.cursor() as cursor:
        cursor.execute(TALLY_AT_HEAD, asked)
        rows = cursor.fetchall()
    now, epoch, version, began_version = rows[0][:4]
    return now, Head(epoch, version), began_version, *_applied([row[4:] for row in rows])


def _applied(rows: Sequence[tuple[Any, ...]]) -> tuple[Applied, Applied]:
    """Split rows of (there, applied, count) into versions of present and of silent instances."""
    there, silent = (
        Applied({applied: count for is_there, applied, count in rows if is_there is which})
        for which in (True, False)
    )
    return there, silent


def behind(version: int, head: Head, now: datetime, *, most: int) -> list[Heard]:
    """Return instances heard from within 30 s that apply an older version, or none.

    Those furthest behind come first, then by id.
    """
    return _named(BEHIND, version, head, now, most)


def fallen_silent(version: int, head: Head, now: datetime, *, most: int) -> list[Heard]:
    """Return instances that fell silent within 5 minutes before applying that version.

    The most recently heard come first.
    """
    return _named(SILENT, version, head, now, most)


def _named(statement: str, version: int, head: Head, now: datetime, most: int) -> list[Heard]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {**_since(head, now), "version": version, "most": most})
        return [Heard(*row) for row in cursor.fetchall()]


def _since(head: Head, now: datetime) -> dict[str, Any]:
    return {
        "epoch": head.epoch,
        "newest": head.version,
        "there": now - HEARD_WITHIN,
        "gone": now - GONE_AFTER,
    }


def delays(epoch: UUID, changes: Sequence[Change]) -> dict[str, Delays]:
    """Return each change's delays, by id, over all instances that acknowledged it in time.

    An instance's delay runs from the commit to its first acknowledgement, within 10 minutes, of
    that version or a later one. Percentiles are measured values (nearest rank). Clock error can
    place an acknowledgement slightly before the commit: that is a delay of 0. Only instances heard
    from before the commit, and not known to have started 5 s or more after it, count; new and since
    forgotten instances don't.
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
    most: int | None = 200,
) -> tuple[list[Caller], int]:
    """Return the `most` busiest callers (None: all) of a switch within that time, and their number.

    Without a switch: one row per instance, as callers of `global:all`. An instance without counts
    under that id gets the sum of its switches, where a call that checks two counts twice.
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
    every_call = everything_id()
    for instance, service, checks in rows:
        by_switch: dict[str, rates.Entry] = orjson.loads(checks)
        # An instance that counts every call under the global switch would count twice by name.
        entries = [by_switch[every_call]] if every_call in by_switch else [*by_switch.values()]
        yield Caller(
            id=instance,
            service=service,
            switch=switch_id or every_call,
            calls_per_second=sum(rates.per_second(entry, now) for entry in entries),
            blocked_per_second=sum(rates.blocked_per_second(entry, now) for entry in entries),
            last_seen=max(rates.seen(entry) for entry in entries),
        )
