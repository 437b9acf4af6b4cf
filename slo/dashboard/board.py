"""The board of SLOs: filters, counts, and rows with sparklines, the worst SLOs first."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Case, Count, IntegerField, Max, Q, Value, When
from django.db.models.functions import Lower

from controlplane.core.authority import TeamFilter
from controlplane.core.durations import format_readable
from controlplane.core.favorites.services import rank_favorites
from controlplane.core.freshness import Freshness, assess_freshness
from controlplane.core.team_filter import ALL_TEAMS
from slo.arithmetic.evaluate import burn_rate
from slo.arithmetic.minutes import EVALUATION_CADENCE, end_of, last_ended
from slo.arithmetic.windows import min_covered
from slo.evaluation import budgets
from slo.evaluation.budgets import SloCounters
from slo.models import Slo, SloStatus
from slo.models.objective import SloQuerySet

PAGE_SIZE = 50
PAGE, TICKET, SPENT, UNKNOWN, OK = "page", "ticket", "spent", "unknown", "ok"
FIRING = "firing"
CONDITIONS = (FIRING, SPENT, UNKNOWN, OK)
MAX_SERVICES = 40

_FIRES = Q(status__state="firing")
_PAGES = _FIRES & Q(status__rules__contains=[{"severity": "page", "state": "firing"}])
_IS_SPENT = ~_FIRES & Q(status__remaining_ratio__lte=0)
_IS_UNKNOWN = (Q(status__isnull=True) | Q(status__state="unknown")) & ~Q(
    status__remaining_ratio__isnull=False, status__remaining_ratio__lte=0
)
_BY_STATE: Mapping[str, Q] = {
    FIRING: _FIRES,
    SPENT: _IS_SPENT,
    UNKNOWN: _IS_UNKNOWN,
    OK: Q(status__state="ok")
    & (Q(status__remaining_ratio__gt=0) | Q(status__remaining_ratio__isnull=True)),
}
_HEAT = Case(
    When(_PAGES, then=Value(0)),
    When(_FIRES, then=Value(1)),
    When(_IS_SPENT, then=Value(2)),
    When(_IS_UNKNOWN, then=Value(3)),
    default=Value(4),
    output_field=IntegerField(),
)
PART_MINUTES, PARTS = 30, 48


@dataclass(frozen=True)
class Sparkline:
    """Burn rates in each half hour of the last day, oldest first; None where unknown.

    `limit` is the lowest burn rate above which a rule pages, None if no rule pages.
    """

    rates: tuple[float | None, ...]
    limit: float | None = None

    @property
    def most(self) -> float | None:
        return max((rate for rate in self.rates if rate is not None), default=None)

    @property
    def unknown_minutes(self) -> int:
        return PART_MINUTES * self.rates.count(None)


ROW_STYLES = {
    PAGE: "board__row--overdue",
    TICKET: "board__row--engaged",
    SPENT: "board__row--half",
}
EMPTY = Sparkline((None,) * PARTS)


@dataclass(frozen=True)
class SloBoardFilters:
    state: str = ""
    service: str = ""
    q: str = ""
    page: int = 1
    favorites: Collection[str] | None = None
    team: TeamFilter = ALL_TEAMS

    @property
    def narrowed(self) -> bool:
        is_filtered = bool(self.state or self.service or self.q or self.favorites is not None)
        return is_filtered or not self.team.is_all


@dataclass(frozen=True)
class SloBoardCounts:
    """Numbers of SLOs by condition, and of all SLOs (`known`).

    `paging` are the firing ones with a firing rule of severity `page`. `evaluated_at` is the time
    of the last evaluation.
    """

    firing: int
    paging: int
    spent: int
    unknown: int
    known: int
    evaluated_at: datetime | None

    @property
    def met(self) -> int:
        """The number of SLOs that are not firing, spent or unknown."""
        return self.known - self.firing - self.spent - self.unknown

    @property
    def all_met(self) -> bool:
        return bool(self.known) and self.met == self.known

    def is_late(self, now: datetime) -> bool:
        return assess_freshness(self.evaluated_at, EVALUATION_CADENCE, now).is_stale


@dataclass(frozen=True)
class SloBoardRow:
    """A row of the board: an SLO, its status, and its burn rates over the last day.

    `budget_gap` says why the budget left is unknown, empty if it is known.
    """

    slo: Slo
    status: SloStatus | None
    spark: Sparkline
    freshness: Freshness
    budget_gap: str

    @property
    def condition(self) -> str:
        return slo_condition(self.status)

    @property
    def style(self) -> str:
        """The CSS class of the row."""
        return ROW_STYLES.get(self.condition, "")

    @property
    def rate_style(self) -> str:
        """The CSS class of the first burn rate."""
        ((_, rate), *_) = self.burn_rates
        if rate is None:
            return "quiet"
        if rate <= 1 or self.freshness.is_stale:
            return ""
        return "slos__figure--grave" if self.firing_rule else "slos__figure--fast"

    @property
    def firing_rule(self) -> Mapping[str, Any] | None:
        """Return the rule that fires, one that pages before one that doesn't; None if none does."""
        firing = (
            (one for one in self.status.rules if one["state"] == "firing") if self.status else ()
        )
        return min(firing, key=lambda one: one["severity"] != PAGE, default=None)

    @property
    def burn_rates(self) -> list[tuple[str, float | None]]:
        """Return windows with their burn rates: that of the rule that fires, then the last hour."""
        rates = self.status.burn_rates if self.status else {}
        rule = self.firing_rule
        return [
            (name, rates.get(name))
            for name in dict.fromkeys([*([rule["long"]] if rule else []), "1h"])
        ]


def slo_condition(status: SloStatus | None) -> str:
    """Return the worst condition of an SLO: page, ticket, spent, unknown or ok, in this order."""
    if status is None:
        return UNKNOWN
    if status.state == "firing":
        firing = (one for one in status.rules if one["state"] == "firing")
        return PAGE if any(one["severity"] == "page" for one in firing) else TICKET
    if status.remaining_ratio is not None and status.remaining_ratio <= 0:
        return SPENT
    return UNKNOWN if status.state == "unknown" else OK


def parse_filters(
    query: Any, favorites: Collection[str] | None = None, team: TeamFilter = ALL_TEAMS
) -> SloBoardFilters:
    """Return the filters of a URL's query, and by name; invalid values are ignored."""
    state, page = query.get("state", ""), query.get("page", "")
    return SloBoardFilters(
        state=state if state in CONDITIONS else "",
        service=query.get("service", "").replace("\x00", "").strip()[:60],
        q=query.get("q", "").replace("\x00", "").strip().lower()[:200],
        page=int(page) if page.isascii() and page.isdigit() and 0 < int(page) < 10_000 else 1,
        favorites=favorites,
        team=team,
    )


def load_page(
    filters: SloBoardFilters, starred: Collection[str], now: datetime
) -> tuple[list[SloBoardRow], bool]:
    """Return the rows of one page, and True if there are more pages, in four queries.

    Of the SLOs in the same condition, those in `starred` come first.
    """
    rows = _filter_slos(filters).annotate(heat=_HEAT).select_related("status", "sli")
    start = (filters.page - 1) * PAGE_SIZE
    ordered = rows.order_by(
        "heat", rank_favorites("name", starred), "status__remaining_ratio", "name"
    )
    found = list(ordered[start : start + PAGE_SIZE + 1])
    last = last_ended(now)
    counters = budgets.load_counters(found[:PAGE_SIZE], _sparkline_edges(last))
    shown = [
        SloBoardRow(
            slo,
            status := getattr(slo, "status", None),
            _draw_sparkline(counters.get(slo.pk), last),
            assess_status(status, now),
            explain_unknown_budget(status, counters.get(slo.pk), last),
        )
        for slo in found[:PAGE_SIZE]
    ]
    return shown, len(found) > PAGE_SIZE


def count_hidden(filters: SloBoardFilters) -> int:
    """Return the number of SLOs that only the filter by team leaves out."""
    if filters.team.is_all:
        return 0
    every = _filter_slos(replace(filters, team=ALL_TEAMS))
    return every.count() - _filter_slos(filters).count()


def assess_status(status: SloStatus | None, now: datetime) -> Freshness:
    return assess_freshness(end_of(status.minute) if status else None, EVALUATION_CADENCE, now)


def explain_unknown_budget(status: SloStatus | None, counted: SloCounters | None, last: int) -> str:
    """Return why the budget left is unknown, empty if it is known.

    `counted` are the SLO's counters up to the minute `last`, None if it has none.
    """
    if status is not None and status.remaining_ratio is not None:
        return ""
    if counted is None:
        return "No data yet"
    whole = counted.measure_period(last)
    needed = min_covered(whole.minutes)
    if whole.covered < needed:
        has = format_readable(timedelta(minutes=whole.covered)) if whole.covered else "0 min"
        return f"Needs {format_readable(timedelta(minutes=needed))} of data, has {has}"
    if whole.is_known(counted.objective.min_events):
        return "Not evaluated yet"
    return "Too few events"


def count_slos() -> SloBoardCounts:
    counted = Slo.objects.present().aggregate(
        firing=Count("pk", filter=_FIRES),
        paging=Count("pk", filter=_PAGES),
        spent=Count("pk", filter=_IS_SPENT),
        unknown=Count("pk", filter=_IS_UNKNOWN),
        known=Count("pk"),
        minute=Max("status__minute"),
    )
    minute = counted.pop("minute")
    return SloBoardCounts(**counted, evaluated_at=None if minute is None else end_of(minute))


def list_services() -> list[str]:
    """Return the services that have SLOs; `MAX_SERVICES + 1` of them if too many to list."""
    services = Slo.objects.present().exclude(service="").order_by("service")
    return list(services.values_list("service", flat=True).distinct()[: MAX_SERVICES + 1])


def _filter_slos(filters: SloBoardFilters) -> SloQuerySet:
    rows = Slo.objects.present()
    if filters.state:
        rows = rows.filter(_BY_STATE[filters.state])
    if filters.service:
        rows = rows.filter(service=filters.service)
    if filters.favorites is not None:
        rows = rows.filter(name__in=filters.favorites)
    if filters.q:
        rows = rows.annotate(lower_name=Lower("name"), lower_owner=Lower("owner")).filter(
            Q(lower_name__contains=filters.q)
            | Q(service__contains=filters.q)
            | Q(lower_owner__contains=filters.q)
        )
    return rows.of_team(filters.team)


def _sparkline_edges(last: int) -> range:
    """Return the bounds of each half hour of the day up to the minute `last`."""
    return range(last - PARTS * PART_MINUTES, last + 1, PART_MINUTES)


def _draw_sparkline(counted: SloCounters | None, last: int) -> Sparkline:
    if counted is None:
        return EMPTY
    windows = (counted.measure(start, end) for start, end in pairwise(_sparkline_edges(last)))
    limits = [rule.burn_rate for rule in counted.objective.rules if rule.severity == PAGE]
    rates = tuple(burn_rate(window, counted.objective) for window in windows)
    return Sparkline(rates, float(min(limits)) if limits else None)
