"""Current status of dependencies: the worst state of their breakers over all instances.

An instance without a report for 30 s is stale: it is shown, but counts only if no instance is
reporting. It is ignored after 5 minutes, or immediately after a clean stop. Only reports of an
instance's current run (boot) count.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from django.db.models import QuerySet

from breakers.models import Dependency, Override
from controlplane.core.freshness import GONE_AFTER, INSTANCE_CADENCE
from controlplane.core.instances.exports import UNSTOPPED_BOOT
from controlplane.core.sql import fetch_all

CLOSED, OPEN, HALF_OPEN, UNKNOWN = "closed", "open", "half_open", "unknown"
WORST_FIRST = (OPEN, HALF_OPEN, CLOSED)

# Reports within 5 minutes by the present run (boot) of each instance that did not stop cleanly.
_REPORTS = f"""
    FROM breakers_breakerstate s
    JOIN {UNSTOPPED_BOOT}
    WHERE i.reported_at >= %(gone)s
"""
_COUNTS = f"""
    SELECT dependency_id,
           count(*) FILTER (WHERE fresh AND state = 'closed'),
           count(*) FILTER (WHERE fresh AND state = 'open'),
           count(*) FILTER (WHERE fresh AND state = 'half_open'),
           count(*) FILTER (WHERE NOT fresh AND state = 'closed'),
           count(*) FILTER (WHERE NOT fresh AND state = 'open'),
           count(*) FILTER (WHERE NOT fresh AND state = 'half_open'),
           count(*) FILTER (WHERE fresh AND mode <> 'normal'),
           sum(failure_rate * calls) FILTER (WHERE fresh AND failure_rate IS NOT NULL)
               / nullif(sum(calls) FILTER (WHERE fresh AND failure_rate IS NOT NULL), 0),
           avg(failure_rate) FILTER (WHERE fresh), max(reported_at)
    FROM (
        SELECT s.dependency_id, s.state, s.mode, s.failure_rate, s.calls, i.reported_at,
               i.reported_at >= %(fresh)s AS fresh
        {_REPORTS} AND s.dependency_id = ANY(%(ids)s)
    ) reports
    GROUP BY dependency_id
"""  # noqa: S608
NO_REPORTS = (0, 0, 0, 0, 0, 0, 0, None, None, None)
_LAST = """
    SELECT wanted.id, last.at
    FROM unnest(%(ids)s::bigint[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT at FROM breakers_transition t WHERE t.dependency_id = wanted.id
        ORDER BY at DESC LIMIT 1
    ) last
"""
_INSTANCES = f"""
    SELECT i.id, i.boot, i.reported_at >= %(fresh)s, i.reported_at, i.config_version,
           s.state, s.mode, s.since, s.failure_rate, s.slow_rate, s.calls, i.relay,
           (i.resilience -> 'breakers' -> %(name)s)::text
    {_REPORTS} AND s.dependency_id = %(id)s
    ORDER BY array_position(ARRAY['open', 'half_open', 'closed'], s.state::text),
             i.reported_at >= %(fresh)s DESC, i.id
    LIMIT %(most)s
"""

# Rank 3 is open, 2 half-open, 1 closed; stale instances count only if none is fresh.
_RANKED = f"""
    SELECT dependency_id FROM (
        SELECT s.dependency_id,
               CASE s.state WHEN 'open' THEN 3 WHEN 'half_open' THEN 2 ELSE 1 END AS rank,
               i.reported_at >= %s AS fresh
        FROM breakers_breakerstate s
        JOIN {UNSTOPPED_BOOT}
        WHERE i.reported_at >= %s
    ) reports
    GROUP BY dependency_id
"""  # noqa: S608
_WORST = " HAVING coalesce(max(rank) FILTER (WHERE fresh), max(rank)) = %s"
RANKS = {"open": 3, "half_open": 2, "closed": 1}


@dataclass(frozen=True)
class DependencyStatus:
    """A dependency and the states of its breakers.

    `counts` are fresh instances by state; `instances` are all, including `stale` ones; `blinded`
    are fresh instances whose mode is not normal. `state` is the worst of the fresh instances,
    otherwise of the stale ones, or `unknown`. `failure_rate` (0 to 1) is the mean of fresh
    instances weighted by calls. `reported_at` is the time of the last report, None without one.
    """

    dependency: Dependency
    state: str
    counts: dict[str, int]
    instances: int
    stale: int
    blinded: int
    failure_rate: float | None
    override: Override | None
    last_transition_at: datetime | None
    reported_at: datetime | None

    @property
    def fresh(self) -> int:
        return self.instances - self.stale

    @property
    def is_stale(self) -> bool:
        """True if the state is known from stale instances alone."""
        return self.stale > 0 and not self.fresh


@dataclass(frozen=True)
class InstanceBreaker:
    """A dependency's breaker in one instance, as last reported; rates are 0 to 1.

    `relay` is the name of the relay through which it was last heard, "" for a data plane.
    """

    id: str
    boot: UUID
    is_fresh: bool
    reported_at: datetime
    config_version: int | None
    state: str
    mode: str
    since: datetime | None
    failure_rate: float | None
    slow_rate: float | None
    calls: int
    relay: str
    counters: dict[str, int]


def load_statuses(dependencies: Sequence[Dependency], now: datetime) -> list[DependencyStatus]:
    """Return the status of each dependency, in the given order. Makes three queries."""
    ids = [one.pk for one in dependencies]
    if not ids:
        return []
    counted = {row[0]: row[1:] for row in _query(_COUNTS, now, ids=ids)}
    last = dict(_query(_LAST, now, ids=ids))
    live = Override.objects.filter(dependency__in=ids, ended_at__isnull=True)
    overrides = {one.dependency_id: one for one in live}
    return [
        _build_status(one, counted.get(one.pk), overrides.get(one.pk), last.get(one.pk))
        for one in dependencies
    ]


def list_instances(dependency: Dependency, now: datetime, *, most: int) -> list[InstanceBreaker]:
    """Return the dependency's breakers by instance, the worst first, at most `most`."""
    rows = _query(_INSTANCES, now, id=dependency.pk, name=dependency.name, most=most)
    return [
        InstanceBreaker(*(*columns, orjson.loads(document or "{}").get("counters", {})))
        for *columns, document in rows
    ]


def find_by_names(wanted: Collection[str]) -> list[Dependency]:
    """Return the dependencies with these names (`core->oracle`), sorted by name."""
    return sorted(Dependency.objects.registered().select_named(wanted), key=lambda one: one.name)


def filter_by_state(rows: QuerySet[Dependency], state: str, now: datetime) -> QuerySet[Dependency]:
    """Return the dependencies with this worst breaker state (:attr:`DependencyStatus.state`)."""
    since = [now - INSTANCE_CADENCE, now - GONE_AFTER]
    if state == UNKNOWN:
        return rows.extra(where=[f"id NOT IN ({_RANKED})"], params=since)  # noqa: S610
    wanted = f"id IN ({_RANKED}{_WORST})"
    return rows.extra(where=[wanted], params=[*since, RANKS[state]])  # noqa: S610


def _build_status(
    dependency: Dependency,
    row: tuple[Any, ...] | None,
    override: Override | None,
    last_transition_at: datetime | None,
) -> DependencyStatus:
    closed, is_open, half_open, *stale, blinded, weighted, plain, reported_at = row or NO_REPORTS
    counts = {CLOSED: closed, OPEN: is_open, HALF_OPEN: half_open}
    old = dict(zip((CLOSED, OPEN, HALF_OPEN), stale, strict=True))
    fresh = sum(counts.values())
    counted = counts if fresh else old
    return DependencyStatus(
        dependency=dependency,
        state=next((state for state in WORST_FIRST if counted[state]), UNKNOWN),
        counts=counts,
        instances=fresh + sum(stale),
        stale=sum(stale),
        blinded=blinded,
        failure_rate=plain if weighted is None else float(weighted),
        override=override,
        last_transition_at=last_transition_at,
        reported_at=reported_at,
    )


def _query(statement: str, now: datetime, **values: Any) -> list[tuple[Any, ...]]:
    since = {"fresh": now - INSTANCE_CADENCE, "gone": now - GONE_AFTER}
    return fetch_all(statement, {**since, **values})
