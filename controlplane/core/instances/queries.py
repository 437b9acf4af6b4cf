"""Queries on instances: applied versions, acknowledgement delays and callers of switches.

An instance applies a version if it last reported a published version of the current epoch; an
instance that reported anything else, or nothing, applies none.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID

import orjson

from controlplane.core.canonical import timestamp
from controlplane.core.freshness import GONE_AFTER, INSTANCE_CADENCE
from controlplane.core.instances import rates
from controlplane.core.registered_sql import PUBLISHED_HEAD
from controlplane.core.scopes import global_switch_id
from controlplane.core.sql import fetch_all

NOT_STOPPED = "(i.stopped_at IS NULL OR i.stopped_at < i.heard_at)"
"""SQL condition: the instance `i` has not stopped cleanly, or it has made contact again since."""
STOPPED = f"({NOT_STOPPED}) IS FALSE"
"""SQL condition: the instance `i` has stopped cleanly, and made no contact since."""
APPLIES = f"""
    SELECT id, applied_epoch, applied_version, heard_at, relay, heard_at >= %(there)s AS there,
           CASE WHEN applied_epoch = %(epoch)s AND applied_version <= %(newest)s
                THEN applied_version ELSE -1 END AS applied
    FROM core_instance i WHERE heard_at >= %(gone)s AND {NOT_STOPPED}
"""  # noqa: S608
TALLY = f"SELECT there, applied, count(*) FROM ({APPLIES}) status GROUP BY there, applied"  # noqa: S608
TALLY_AT_HEAD = """
    SELECT head.now, head.epoch, head.version, head.began_version, status.there, status.applied,
           count(status.there)
    FROM (SELECT clock_timestamp() AS now, epoch, version, began_version
          FROM ({published_head}) published OFFSET 0) head
    LEFT JOIN LATERAL (
        SELECT heard_at >= head.now - %s AS there,
               CASE WHEN applied_epoch = head.epoch AND applied_version <= head.version
                    THEN applied_version ELSE -1 END AS applied
        FROM core_instance i WHERE heard_at >= head.now - %s AND {not_stopped}
    ) status ON true
    GROUP BY 1, 2, 3, 4, 5, 6
"""
BEHIND = f"""
    SELECT id, applied_epoch, applied_version, heard_at, relay FROM ({APPLIES}) status
    WHERE there AND applied < %(version)s ORDER BY applied, id LIMIT %(most)s
"""  # noqa: S608
SILENT = f"""
    SELECT id, applied_epoch, applied_version, heard_at, relay FROM ({APPLIES}) status
    WHERE NOT there AND applied < %(version)s ORDER BY heard_at DESC, id LIMIT %(most)s
"""  # noqa: S608
DELAYS = """
    SELECT c.id,
           percentile_disc(0.5) WITHIN GROUP (ORDER BY delay.ms),
           percentile_disc(0.99) WITHIN GROUP (ORDER BY delay.ms),
           count(delay.ms), count(delay.ms) FILTER (WHERE delay.stopped)
    FROM unnest(%(ids)s::text[], %(versions)s::bigint[], %(times)s::timestamptz[])
         AS c (id, version, committed_at)
    LEFT JOIN LATERAL (
        SELECT greatest(0, round(extract(epoch FROM first.at - c.committed_at) * 1000))::bigint ms,
               {stopped} AS stopped
        FROM (
            SELECT a.instance, min(a.acknowledged_at) AS at
            FROM core_acknowledgement a
            JOIN ({published_head}) p ON p.epoch = a.epoch AND p.version >= a.version
            WHERE a.epoch = %(epoch)s AND a.version >= c.version
              AND a.acknowledged_at >= c.committed_at - interval '5 seconds'
              AND a.acknowledged_at <= c.committed_at + interval '10 minutes'
            GROUP BY a.instance
        ) first
        JOIN core_instance i ON i.id = first.instance AND i.first_heard_at < c.committed_at
        WHERE NOT coalesce(i.started_at > c.committed_at + interval '5 seconds'
                           AND i.started_at <= first.at, false)
    ) delay ON true
    GROUP BY c.id
"""
CALLERS = f"""
    SELECT id, service, relay, {STOPPED},
           jsonb_build_object(%(switch)s::text, checks -> %(switch)s)::text
    FROM core_instance i WHERE checks ? %(switch)s
"""  # noqa: S608
CALLERS_OF_ANY = f"""
    SELECT id, service, relay, {STOPPED}, checks::text FROM core_instance i WHERE checks <> '{{}}'
"""  # noqa: S608
CHECKING = f"""
    SELECT count(*), count(*) FILTER (WHERE {NOT_STOPPED} AND heard_at >= %(there)s),
           count(*) FILTER (WHERE {STOPPED})
    FROM core_instance i WHERE checks -> %(switch)s ->> 'seen' >= %(since)s
"""  # noqa: S608


@dataclass(frozen=True)
class Head:
    """The epoch and version published last; all earlier versions of the epoch were published."""

    epoch: UUID
    version: int


@dataclass(frozen=True)
class InstanceStatus:
    """An instance with the epoch and version that it last reported, if any, and when that was.

    `relay` is the name of the relay through which it was last heard, "" for a data plane.
    """

    id: str
    epoch: UUID | None
    version: int | None
    heard_at: datetime
    relay: str = ""


class VersionCounts:
    """Numbers of instances by the version that they apply; the key -1 stands for no version."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self._versions = sorted(counts)
        self._sums = [0, *accumulate(counts[version] for version in self._versions)]

    @property
    def total(self) -> int:
        return self._sums[-1]

    def below(self, version: int) -> int:
        """Return the number of instances that apply no version or one older than `version`."""
        return self._sums[bisect_left(self._versions, version)]


@dataclass(frozen=True)
class PublishedChange:
    """The last published change of the switch `id`, and the time of its commit."""

    id: str
    version: int
    committed_at: datetime


@dataclass(frozen=True)
class Delays:
    """Percentiles of the delay from a change's commit to its acknowledgement by instances.

    They are None without acknowledgements. `measured` is the number of instances in the sample,
    of which `stopped` have stopped cleanly since.
    """

    p50_ms: int | None
    p99_ms: int | None
    measured: int
    stopped: int


@dataclass(frozen=True)
class Caller:
    """An instance that checks `switch`: its call rates over the last 60 s, and its last check.

    `has_stopped` is True if it stopped cleanly and has made no contact since; its rates are 0.
    `relay` is the name of the relay through which it was last heard, "" for a data plane.
    """

    id: str
    service: str
    switch: str
    calls_per_second: float
    blocked_per_second: float
    last_seen: datetime
    has_stopped: bool
    relay: str = ""


@dataclass(frozen=True)
class CheckingInstances:
    """Numbers of callers of a switch: all of them, those that report, and those that stopped.

    The others fell silent, or are API tokens.
    """

    total: int
    reporting: int
    stopped: int


def count_versions(head: Head, now: datetime) -> tuple[VersionCounts, VersionCounts]:
    """Count live instances by the version they apply, and likewise recently silent ones.

    Reporting instances made contact in the last 30 s, silent ones 30 s to 5 minutes ago.
    Instances that stopped cleanly are neither.
    """
    return _split_counts(fetch_all(TALLY, _time_limits(head, now)))


def count_versions_at_head() -> tuple[datetime, Head, int, VersionCounts, VersionCounts]:
    """Return the database's time, the published head, the first version of its epoch, and counts.

    The counts are those of :func:`count_versions`; one query reads everything.
    """
    statement = TALLY_AT_HEAD.format(published_head=PUBLISHED_HEAD.get(), not_stopped=NOT_STOPPED)
    rows = fetch_all(statement, [INSTANCE_CADENCE, GONE_AFTER])
    now, epoch, version, began_version = rows[0][:4]
    return now, Head(epoch, version), began_version, *_split_counts([row[4:] for row in rows])


def _split_counts(rows: Sequence[tuple[Any, ...]]) -> tuple[VersionCounts, VersionCounts]:
    # Rows of (is live, applied version, number of instances).
    there, silent = (
        VersionCounts({applied: count for is_there, applied, count in rows if is_there is which})
        for which in (True, False)
    )
    return there, silent


def list_lagging_instances(
    version: int, head: Head, now: datetime, *, most: int
) -> list[InstanceStatus]:
    """Return live instances that don't apply `version` or a later one, furthest behind first."""
    return _list_instances(BEHIND, version, head, now, most)


def list_silent_instances(
    version: int, head: Head, now: datetime, *, most: int
) -> list[InstanceStatus]:
    """Return instances that fell silent in the last 5 minutes without applying `version`.

    The instances with the most recent contact come first.
    """
    return _list_instances(SILENT, version, head, now, most)


def _list_instances(
    statement: str, version: int, head: Head, now: datetime, most: int
) -> list[InstanceStatus]:
    parameters = {**_time_limits(head, now), "version": version, "most": most}
    return [InstanceStatus(*row) for row in fetch_all(statement, parameters)]


def _time_limits(head: Head, now: datetime) -> dict[str, Any]:
    return {
        "epoch": head.epoch,
        "newest": head.version,
        "there": now - INSTANCE_CADENCE,
        "gone": now - GONE_AFTER,
    }


def load_delays(epoch: UUID, changes: Sequence[PublishedChange]) -> dict[str, Delays]:
    """Return, by switch id, how long instances took to acknowledge the switch's change.

    An instance's delay runs from the commit to its first acknowledgement of that version or a later
    one, within 10 minutes. Percentiles are measured values (nearest rank). An acknowledgement
    shortly before the commit, by clock error, is a delay of 0. An instance counts only if it made
    contact before the commit and didn't restart between the commit (plus 5 s) and its
    acknowledgement.
    """
    parameters: dict[str, Any] = {
        "epoch": epoch,
        "ids": [change.id for change in changes],
        "versions": [change.version for change in changes],
        "times": [change.committed_at for change in changes],
    }
    if not changes:
        return {}
    statement = DELAYS.format(published_head=PUBLISHED_HEAD.get(), stopped=STOPPED)
    return {row[0]: Delays(*row[1:]) for row in fetch_all(statement, parameters)}


def list_callers(
    switch_id: str | None,
    now: datetime,
    *,
    within: timedelta = timedelta(hours=1),
    most: int | None = 200,
) -> tuple[list[Caller], int]:
    """Return the instances that checked a switch in the last `within`, busiest first.

    The second value is the number of all callers, of which at most `most` are returned. If
    `switch_id` is None, each instance is returned once, as a caller of `global:all`. For an
    instance that reported no counts for `global:all`, the counts of its switches are added up.
    """
    found = [caller for caller in _load_callers(switch_id, now) if caller.last_seen >= now - within]
    found.sort(key=lambda caller: (-caller.calls_per_second, caller.id))
    return found[:most], len(found)


def _load_callers(switch_id: str | None, now: datetime) -> Iterator[Caller]:
    if switch_id is None:
        rows = fetch_all(CALLERS_OF_ANY)
    else:
        rows = fetch_all(CALLERS, {"switch": switch_id})
    global_switch = global_switch_id()
    for instance, service, relay, has_stopped, checks in rows:
        by_switch: dict[str, rates.Entry] = orjson.loads(checks)
        # The global switch's counts already include every call of the instance.
        entries = (
            [by_switch[global_switch]] if global_switch in by_switch else [*by_switch.values()]
        )
        running = () if has_stopped else entries
        yield Caller(
            id=instance,
            service=service,
            switch=switch_id or global_switch,
            calls_per_second=sum(rates.per_second(entry, now) for entry in running),
            blocked_per_second=sum(rates.blocked_per_second(entry, now) for entry in running),
            last_seen=max(rates.last_seen(entry) for entry in entries),
            has_stopped=has_stopped,
            relay=relay,
        )


def count_checking_instances(switch_id: str, since: datetime, now: datetime) -> CheckingInstances:
    """Count the callers that checked a switch since `since`."""
    parameters = {"switch": switch_id, "since": timestamp(since), "there": now - INSTANCE_CADENCE}
    ((total, reporting, stopped),) = fetch_all(CHECKING, parameters)
    return CheckingInstances(total, reporting, stopped)
