"""The board of breakers: dependencies filtered, counted and sorted by evidence."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from breakers.counts import BreakerCounts
from breakers.models import Dependency
from breakers.models.registry import Criticality
from breakers.states.evidence import JUDGED, WORST_FIRST, Evidence, evidence_values
from breakers.states.history import (
    FailureSpark,
    MinuteRow,
    assess_failures,
    build_spark,
    sum_counts,
)
from breakers.states.minutes import load_minutes
from breakers.states.recent_calls import find_failing, first_recent_minute
from breakers.states.reporting_counts import (
    REPORTING_COUNTS,
    ReportingCounts,
    find_unused_samples,
)
from controlplane.core.authority import TeamFilter, TeamName, Teams, read_teams
from controlplane.core.configuration.samples import read_loading_times
from controlplane.core.sql import fetch_all
from controlplane.core.team_filter import ALL_TEAMS

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

_PAGE = f"""
    WITH {JUDGED}, counted AS (
        SELECT {REPORTING_COUNTS},
               count(*) FILTER (WHERE state = 'open') AS open,
               count(*) FILTER (WHERE state = 'half_open') AS half_open,
               count(*) FILTER (WHERE overridden) AS overridden,
               count(*) FILTER (WHERE failing) AS failing,
               count(*) FILTER (WHERE state = 'open' AND criticality IN ('critical', 'high'))
                   AS grave,
               count(*) FILTER (WHERE present) AS present
        FROM judged
    )
    SELECT counted.*, (
        SELECT count(*) FROM judged WHERE true {{narrowed}} AND {{hidden}}
    ), ARRAY(
        SELECT id FROM judged WHERE true {{narrowed}} AND NOT {{hidden}}
        ORDER BY evidence, {{favorites_first}} {WORST_FIRST}
        LIMIT %(most)s OFFSET %(start)s)
    FROM counted
"""  # noqa: S608
_HIDDEN = "id <> ALL(%(owned)s)"
_FAVORITES_FIRST = "caller || '->' || callee <> ALL(%(starred)s),"
_NARROWED: Mapping[str, str] = {
    dependency_status.OPEN: "AND state = 'open'",
    dependency_status.HALF_OPEN: "AND state = 'half_open'",
    OVERRIDDEN: "AND overridden",
    dependency_status.CLOSED: "AND state = 'closed'",
    dependency_status.UNKNOWN: "AND state = 'unknown'",
    FAILING: "AND failing",
    "criticality": "AND criticality = %(criticality)s",
    "caller": "AND caller = %(caller)s",
    "favorites": "AND caller || '->' || callee = ANY(%(favorites)s)",
    "q": "AND position(%(q)s IN caller || '->' || callee || ' ' || lower(owner)) > 0",
}


@dataclass(frozen=True)
class BreakerBoardFilter:
    """Filters of the board; empty values don't filter. `favorites` are names of dependencies.

    `state` may also be `overridden` or `failing`. Without a filter, dependencies that report no
    state are left out as long as others do; samples that were never reported always are.
    """

    state: str = ""
    criticality: str = ""
    caller: str = ""
    q: str = ""
    page: int = 1
    favorites: Collection[str] | None = None
    team: TeamFilter = ALL_TEAMS

    @property
    def narrowed(self) -> bool:
        is_filtered = bool(self.state or self.criticality or self.caller or self.q)
        return is_filtered or self.favorites is not None or not self.team.is_all


@dataclass(frozen=True)
class BreakerBoardCounts(ReportingCounts):
    """Numbers of dependencies, shown on the board.

    `open` and `half_open` count dependencies by the worst state of their breakers, `overridden`
    those with a live override, `failing` those whose calls fail though their breakers are closed.
    `grave` counts critical and high dependencies with an open breaker, and `present` those with a
    report within 5 minutes by an instance that did not stop cleanly.
    """

    open: int
    half_open: int
    overridden: int
    failing: int
    grave: int
    present: int

    @property
    def absent(self) -> int:
        """Dependencies without a report within 5 minutes, or only by cleanly stopped instances."""
        return self.known - self.present

    @property
    def troubled(self) -> bool:
        """True if a breaker is open, half-open or closed with failing calls."""
        return bool(self.open or self.half_open or self.failing)

    @property
    def is_calm(self) -> bool:
        """True if there are reports, none shows trouble, and every dependency is reported."""
        return bool(self.reported) and not (self.troubled or self.silent)


@dataclass(frozen=True)
class PastCalls:
    """Calls of the last hour: the share (0 to 1) of those that failed, and the last one's time."""

    failure_share: float
    last_at: datetime


@dataclass(frozen=True)
class BreakerBoardRow:
    """A dependency on the board, with its last hour.

    `recent` are the counts of the last five minutes; `past` is None if these have calls, or if the
    hour has none. `calls_fail` is true if the recent calls show the dependency as failing. `team`
    owns the dependency.
    """

    status: DependencyStatus
    spark: FailureSpark
    recent: BreakerCounts
    past: PastCalls | None
    calls_fail: bool
    team: TeamName | None = None

    @property
    def state(self) -> str:
        """The breaker's state, or `failing` if it is closed and calls fail."""
        is_failing = self.calls_fail and self.status.state == dependency_status.CLOSED
        return FAILING if is_failing else self.status.state

    @property
    def highlight(self) -> str:
        """The color of the row's edge: a part of a CSS class, empty for ordinary rows."""
        by_state = {dependency_status.OPEN: "engaged", dependency_status.HALF_OPEN: "half"}
        if self.status.override or self.state == FAILING:
            return by_state.get(self.state, "ramping")
        return by_state.get(self.state, "")

    @property
    def shown(self) -> Sequence[object]:
        """The data that the row shows: equal rows look equal."""
        status, dependency, override = self.status, self.status.dependency, self.status.override
        registered = [dependency.criticality, dependency.owner, bool(dependency.document)]
        forced = override and [override.mode, override.set_by_name, override.expires_at]
        recent = [self.recent.share(name) for name in ("failure", "timeout", "rejected")]
        return [
            dependency.pk,
            dependency.name,
            registered,
            self.team,
            self.state,
            status.state,
            status.counts,
            status.stale,
            status.is_stale and status.reported_at,
            forced,
            status.last_transition_at,
            self.calls_fail,
            recent,
            self.past,
            self.spark,
        ]


@dataclass(frozen=True)
class BreakerBoardPage:
    """A page of the board; `samples` are the names of its rows that are samples.

    `hidden` counts the dependencies that only the filter by team leaves out.
    """

    rows: Sequence[BreakerBoardRow]
    more: bool
    counts: BreakerBoardCounts
    samples: frozenset[str]
    hidden: int = 0


def parse_filter(
    query: Any, favorites: Collection[str] | None = None, team: TeamFilter = ALL_TEAMS
) -> BreakerBoardFilter:
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
        team=team,
    )


def load_page(
    filters: BreakerBoardFilter,
    starred: Collection[str],
    now: datetime,
    *,
    teams: Teams | None = None,
) -> BreakerBoardPage:
    """Return a page of the board and the counts of all dependencies. Makes up to eight queries.

    Of the dependencies with the same evidence, those in `starred` come first. `teams` saves a
    query if they were read already.
    """
    teams = read_teams() if teams is None else teams
    failing, loaded = find_failing(now), read_loading_times("dependency")
    counts, hidden, ids = _query(filters, starred, failing, find_unused_samples(loaded), now)
    by_id = Dependency.objects.in_bulk(ids[:PAGE_SIZE])
    shown = [by_id[pk] for pk in ids[:PAGE_SIZE] if pk in by_id]
    first = now.replace(second=0, microsecond=0) - timedelta(minutes=SPARK_MINUTES - 1)
    recent = first_recent_minute(now)
    minutes = load_minutes(ids[:PAGE_SIZE], first)
    rows = []
    for one in dependency_status.load_statuses(shown, now):
        hour = minutes.get(one.dependency.pk, ())
        spark = build_spark(hour, first, SPARK_MINUTES)
        counts_now = sum_counts(minute for minute in hour if minute.minute >= recent)
        past = None if counts_now.calls or counts_now.rejected else _find_past_calls(hour, now)
        calls_fail, team = one.dependency.pk in failing, teams.owner_of(one.dependency.resource)
        rows.append(BreakerBoardRow(one, spark, counts_now, past, calls_fail, team))
    sample_names = frozenset(one.name for one in shown if loaded.get(one.name) == one.changed_at)
    return BreakerBoardPage(rows, len(ids) > PAGE_SIZE, counts, sample_names, hidden)


def list_callers() -> list[str]:
    """Return the callers by which the board can be filtered, at most `MAX_CALLERS` + 1."""
    callers = Dependency.objects.registered().order_by("caller").values_list("caller", flat=True)
    return list(callers.distinct()[: MAX_CALLERS + 1])


def _find_past_calls(hour: Iterable[MinuteRow], now: datetime) -> PastCalls | None:
    share, last = sum_counts(hour).failure_share, assess_failures(hour, now).at
    return None if share is None or last is None else PastCalls(share, last)


def _query(
    filters: BreakerBoardFilter,
    starred: Collection[str],
    failing: Collection[int],
    samples: Sequence[int],
    now: datetime,
) -> tuple[BreakerBoardCounts, int, list[int]]:
    clauses = [_NARROWED[name] for name in ("criticality", "caller", "q") if getattr(filters, name)]
    if filters.favorites is not None:
        clauses.append(_NARROWED["favorites"])
    if filters.state:
        clauses.append(_NARROWED[filters.state])
    elif not filters.narrowed:
        clauses.append(
            f"AND (evidence < {Evidence.UNREPORTED:d}"
            " OR counted.present = 0 AND id <> ALL(%(samples)s))"
        )
    values: dict[str, Any] = {
        **evidence_values(failing, now),
        "criticality": filters.criticality,
        "caller": filters.caller,
        "q": filters.q.replace(" ", ""),
        "favorites": list(filters.favorites or ()),
        "starred": list(starred),
        "samples": samples,
        "owned": _find_owned(filters.team),
        "most": PAGE_SIZE + 1,
        "start": (filters.page - 1) * PAGE_SIZE,
    }
    statement = _PAGE.format(
        narrowed=" ".join(clauses),
        hidden="false" if filters.team.is_all else _HIDDEN,
        favorites_first=_FAVORITES_FIRST if starred else "",
    )
    ((*counts, hidden, ids),) = fetch_all(statement, values)
    return BreakerBoardCounts(*counts), hidden, ids


def _find_owned(team: TeamFilter) -> list[int]:
    """Return the ids of the dependencies that the filter selects; none if it selects all."""
    if team.is_all:
        return []
    return list(Dependency.objects.registered().of_team(team).values_list("pk", flat=True))
