"""The board of breakers: dependencies filtered, counted and sorted by evidence, worst first."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from breakers.counts import BreakerCounts
from breakers.models import Dependency, Minute
from breakers.models.registry import Criticality
from breakers.states.history import FailureSpark, assess_failures, build_spark, sum_counts
from breakers.states.recent_calls import FAILING_SHARE, first_recent_minute, is_failing
from controlplane.core.freshness import GONE_AFTER, INSTANCE_CADENCE, Freshness
from controlplane.core.instances.exports import PRESENT_BOOT
from controlplane.core.sql import fetch_all

from . import dependency_status
from .dependency_status import DependencyStatus

PAGE_SIZE = 50
OVERRIDDEN = "overridden"
FAILING = "failing"
STATES = (
    dependency_status.OPEN,
    dependency_status.HALF_OPEN,
    OVERRIDDEN,
    FAILING,
    dependency_status.CLOSED,
    dependency_status.UNKNOWN,
)
SPARK_MINUTES = 60
MAX_CALLERS = 40

# Breakers that are not closed are few and have a partial index, so only those are aggregated.
# `heat` is the rank on the board: open or half-open by fresh reports, then by stale reports where
# none is fresh, then overridden, failing while closed, and those that report no state last.
_HOT = f"""
    WITH reporting AS (
        SELECT s.dependency_id, bool_or(i.reported_at >= %(fresh)s) AS fresh
        FROM breakers_breakerstate s
        JOIN {PRESENT_BOOT}
        WHERE i.reported_at >= %(gone)s
        GROUP BY s.dependency_id
    ), hot AS (
        SELECT s.dependency_id,
               bool_or(i.reported_at >= %(fresh)s AND s.state = 'open') AS is_open,
               bool_or(i.reported_at >= %(fresh)s AND s.state = 'half_open') AS half_open,
               bool_or(s.state = 'open') AS was_open
        FROM breakers_breakerstate s
        JOIN {PRESENT_BOOT}
        WHERE i.reported_at >= %(gone)s AND s.state <> 'closed'
        GROUP BY s.dependency_id
    ), unwell AS (
        SELECT hot.*, EXISTS (
            SELECT FROM breakers_breakerstate s
            JOIN {PRESENT_BOOT}
            WHERE s.dependency_id = hot.dependency_id AND i.reported_at >= %(fresh)s) AS heard
        FROM hot
    ), failing AS (
        SELECT dependency_id FROM breakers_minute
        WHERE minute >= %(recent)s
        GROUP BY dependency_id
        HAVING sum(failure + timeout + rejected)
               >= %(share)s * greatest(sum(success + failure + timeout + rejected), 1)
    ), judged AS (
        SELECT d.id, d.caller, d.callee, d.criticality, d.owner, o.id IS NOT NULL AS overridden,
               CASE WHEN unwell.is_open OR NOT unwell.heard AND unwell.was_open THEN 'open'
                    WHEN unwell.half_open OR NOT unwell.heard THEN 'half_open'
                    ELSE 'calm' END AS state,
               CASE WHEN unwell.is_open THEN 0 WHEN unwell.half_open THEN 1
                    WHEN NOT unwell.heard AND unwell.was_open THEN 2
                    WHEN NOT unwell.heard THEN 3
                    WHEN o.id IS NOT NULL THEN 4
                    WHEN failing.dependency_id IS NOT NULL THEN 5
                    WHEN reporting.dependency_id IS NOT NULL THEN 6 ELSE 7 END AS heat,
               CASE d.criticality WHEN 'critical' THEN 0 WHEN 'high' THEN 1
                    WHEN 'medium' THEN 2 ELSE 3 END AS weight,
               coalesce(reporting.fresh, false) AS reported,
               reporting.dependency_id IS NOT NULL AS present
        FROM breakers_dependency d
        LEFT JOIN failing ON failing.dependency_id = d.id
        LEFT JOIN reporting ON reporting.dependency_id = d.id
        LEFT JOIN unwell ON unwell.dependency_id = d.id
        LEFT JOIN breakers_override o ON o.dependency_id = d.id AND o.ended_at IS NULL
        WHERE d.removed_at IS NULL
    ), counted AS (
        SELECT count(*) FILTER (WHERE state = 'open') AS open,
               count(*) FILTER (WHERE state = 'half_open') AS half_open,
               count(*) FILTER (WHERE overridden) AS overridden,
               count(*) FILTER (WHERE heat = 5) AS failing,
               count(*) FILTER (WHERE state = 'open' AND criticality IN ('critical', 'high'))
                   AS grave,
               count(*) AS known,
               count(*) FILTER (WHERE present) AS present,
               count(*) FILTER (WHERE reported) AS reported,
               count(*) FILTER (WHERE NOT reported AND criticality = 'critical') AS in_the_dark
        FROM judged
    )
    SELECT counted.*, ARRAY(
        SELECT id FROM judged WHERE true {{narrowed}}
        ORDER BY heat, weight, caller, callee
        LIMIT %(most)s OFFSET %(start)s)
    FROM counted
"""  # noqa: S608
_NARROWED: Mapping[str, str] = {
    dependency_status.OPEN: "AND state = 'open'",
    dependency_status.HALF_OPEN: "AND state = 'half_open'",
    OVERRIDDEN: "AND overridden",
    dependency_status.CLOSED: "AND state = 'calm' AND present",
    dependency_status.UNKNOWN: "AND state = 'calm' AND NOT present",
    FAILING: "AND heat = 5",
    "criticality": "AND criticality = %(criticality)s",
    "caller": "AND caller = %(caller)s",
    "favorites": "AND caller || '->' || callee = ANY(%(favorites)s)",
    "q": "AND position(%(q)s IN caller || '->' || callee || ' ' || lower(owner)) > 0",
}


@dataclass(frozen=True)
class BreakerBoardFilter:
    """Filters of the board; empty values don't filter. `favorites` are names of dependencies.

    `state` may also be `overridden` or `failing`. Without a filter, dependencies that report no
    state are left out as long as others do.
    """

    state: str = ""
    criticality: str = ""
    caller: str = ""
    q: str = ""
    page: int = 1
    favorites: Collection[str] | None = None

    @property
    def narrowed(self) -> bool:
        is_filtered = bool(self.state or self.criticality or self.caller or self.q)
        return is_filtered or self.favorites is not None


@dataclass(frozen=True)
class BreakerBoardCounts:
    """Numbers of dependencies, shown on the board.

    `open` and `half_open` count dependencies by the worst state of their breakers, `overridden`
    those with a live override, `failing` those whose calls fail though their breakers are closed.
    `grave` counts critical and high dependencies with an open breaker, `known` all dependencies,
    `present` those with a report within 5 minutes, `reported` within 30 s, and `in_the_dark`
    critical ones without a report within 30 s.
    """

    open: int
    half_open: int
    overridden: int
    failing: int
    grave: int
    known: int
    present: int
    reported: int
    in_the_dark: int

    @property
    def silent(self) -> int:
        return self.known - self.reported

    @property
    def absent(self) -> int:
        """Dependencies without a report within 5 minutes."""
        return self.known - self.present

    @property
    def is_calm(self) -> bool:
        """True if no breaker is open, half-open or failing, and every dependency is reported."""
        return not (self.open or self.half_open or self.failing or self.silent)


@dataclass(frozen=True)
class BreakerBoardRow:
    """A dependency on the board, with its last hour.

    `failure_share` (0 to 1) of the calls is None if there were none. `failures` is the freshness of
    the breakers' own failure rate. `recent` are the counts of the last five minutes.
    """

    status: DependencyStatus
    spark: FailureSpark
    failure_share: float | None
    failures: Freshness
    recent: BreakerCounts

    @property
    def is_failing(self) -> bool:
        return is_failing(self.status.state, self.recent)


@dataclass(frozen=True)
class BreakerBoardPage:
    rows: Sequence[BreakerBoardRow]
    more: bool
    counts: BreakerBoardCounts


def parse_filter(query: Any, favorites: Collection[str] | None = None) -> BreakerBoardFilter:
    """Parse the filters of the board from a URL's query; invalid values are ignored."""
    state, criticality = query.get("state", ""), query.get("criticality", "")
    page = query.get("page", "")
    return BreakerBoardFilter(
        state=state if state in STATES else "",
        criticality=criticality if criticality in Criticality.values else "",
        caller=query.get("caller", "").replace("\x00", "").strip()[:60],
        q=query.get("q", "").replace("\x00", "").strip().lower().replace("→", "->")[:200],
        page=int(page) if page.isascii() and page.isdigit() and 0 < int(page) < 10_000 else 1,
        favorites=favorites,
    )


def load_page(filters: BreakerBoardFilter, now: datetime) -> BreakerBoardPage:
    """Return one page of the board and the counts of all dependencies. Makes five queries."""
    counts, ids = _query(filters, now)
    by_id = Dependency.objects.in_bulk(ids[:PAGE_SIZE])
    shown = [by_id[pk] for pk in ids[:PAGE_SIZE] if pk in by_id]
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=SPARK_MINUTES - 1)
    recent = first_recent_minute(now)
    minutes: dict[int, list[Minute]] = defaultdict(list)
    last_hour = Minute.objects.filter(dependency__in=ids[:PAGE_SIZE], minute__gte=first)
    for minute in last_hour.order_by("minute"):
        minutes[minute.dependency_id].append(minute)
    rows = []
    for one in dependency_status.load_statuses(shown, now):
        hour = minutes[one.dependency.pk]
        spark = build_spark(hour, first, SPARK_MINUTES)
        failures = assess_failures(hour, now)
        last = sum_counts(minute for minute in hour if minute.minute >= recent)
        rows.append(BreakerBoardRow(one, spark, sum_counts(hour).failure_share, failures, last))
    return BreakerBoardPage(rows, len(ids) > PAGE_SIZE, counts)


def load_counts(now: datetime) -> BreakerBoardCounts:
    """Return the board's counts of all dependencies. Makes one query."""
    return _query(BreakerBoardFilter(), now)[0]


def list_callers() -> list[str]:
    """Return the callers by which the board can be filtered, at most `MAX_CALLERS` + 1."""
    callers = Dependency.objects.registered().order_by("caller").values_list("caller", flat=True)
    return list(callers.distinct()[: MAX_CALLERS + 1])


def _query(filters: BreakerBoardFilter, now: datetime) -> tuple[BreakerBoardCounts, list[int]]:
    clauses = [_NARROWED[name] for name in ("criticality", "caller", "q") if getattr(filters, name)]
    if filters.favorites is not None:
        clauses.append(_NARROWED["favorites"])
    if filters.state:
        clauses.append(_NARROWED[filters.state])
    elif not filters.narrowed:
        clauses.append("AND (heat < 7 OR NOT EXISTS (SELECT FROM reporting))")
    values: dict[str, Any] = {
        "fresh": now - INSTANCE_CADENCE,
        "gone": now - GONE_AFTER,
        "recent": first_recent_minute(now),
        "share": FAILING_SHARE,
        "criticality": filters.criticality,
        "caller": filters.caller,
        "q": filters.q.replace(" ", ""),
        "favorites": list(filters.favorites or ()),
        "most": PAGE_SIZE + 1,
        "start": (filters.page - 1) * PAGE_SIZE,
    }
    statement = _HOT.format(narrowed=" ".join(clauses))
    ((*counts, ids),) = fetch_all(statement, values)
    return BreakerBoardCounts(*counts), ids
