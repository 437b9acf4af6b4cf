"""The board of SLOs: filters, counts, and rows, the worst first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, IntegerField, Max, Q, Value, When
from django.db.models.functions import Lower

from slo.arithmetic.minutes import end_of, last_ended
from slo.models import Slo, SloStatus
from slo.models.objective import SloQuerySet

from . import sparklines
from .sparklines import Sparkline

PAGE_SIZE = 50
PAGE, TICKET, SPENT, UNKNOWN, OK = "page", "ticket", "spent", "unknown", "ok"
FIRING = "firing"
CONDITIONS = (FIRING, SPENT, UNKNOWN, OK)
LATE_MINUTES = 5
"""A status older than this is shown as late: evaluation has stopped."""
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


@dataclass(frozen=True)
class SloBoardFilters:
    """Filters of the board; empty values match everything."""

    state: str = ""
    service: str = ""
    q: str = ""
    page: int = 1

    @property
    def narrowed(self) -> bool:
        return bool(self.state or self.service or self.q)


@dataclass(frozen=True)
class SloBoardCounts:
    """The number of SLOs by condition; `paging` are firing ones that page."""

    firing: int
    paging: int
    spent: int
    unknown: int
    known: int
    judged_at: datetime | None

    @property
    def met(self) -> int:
        """Return the number of known SLOs that don't fire and have budget left."""
        return self.known - self.firing - self.spent - self.unknown

    def is_late(self, now: datetime) -> bool:
        """Return whether nothing was evaluated for a while."""
        return self.judged_at is not None and now - self.judged_at > timedelta(minutes=LATE_MINUTES)


@dataclass(frozen=True)
class SloBoardRow:
    """An SLO as the board shows it, with its last day."""

    slo: Slo
    status: SloStatus | None
    spark: Sparkline
    late: bool

    @property
    def condition(self) -> str:
        return slo_condition(self.status)

    @property
    def burn_rate(self) -> float | None:
        """Return the burn rate of the last hour."""
        return None if self.status is None else self.status.burn_rates.get("1h")


@dataclass(frozen=True)
class SloBoardPage:
    rows: Sequence[SloBoardRow] = field(default_factory=list)
    more: bool = False


def slo_condition(status: SloStatus | None) -> str:
    """Return the worst condition that applies: page, ticket, spent, unknown or ok."""
    if status is None:
        return UNKNOWN
    if status.state == "firing":
        return PAGE if is_paging(status) else TICKET
    if status.remaining_ratio is not None and status.remaining_ratio <= 0:
        return SPENT
    return UNKNOWN if status.state == "unknown" else OK


def is_paging(status: SloStatus) -> bool:
    """Return whether one of the firing rules pages."""
    return any(one["state"] == "firing" and one["severity"] == "page" for one in status.rules)


def parse_filters(given: Any) -> SloBoardFilters:
    """Parse the filters of a URL; invalid values are ignored."""
    state, page = given.get("state", ""), given.get("page", "")
    return SloBoardFilters(
        state=state if state in CONDITIONS else "",
        service=given.get("service", "").replace("\x00", "").strip()[:60],
        q=given.get("q", "").replace("\x00", "").strip().lower()[:200],
        page=int(page) if page.isascii() and page.isdigit() and 0 < int(page) < 10_000 else 1,
    )


def load_page(filters: SloBoardFilters, now: datetime) -> SloBoardPage:
    """Return one page of the board; four queries whatever the number."""
    rows = _filter_slos(filters).annotate(heat=_HEAT).select_related("status", "sli")
    start = (filters.page - 1) * PAGE_SIZE
    ordered = rows.order_by("heat", "status__remaining_ratio", "name")
    found = list(ordered[start : start + PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    drawn = sparklines.load_sparklines(shown, now)
    return SloBoardPage(
        [_make_row(slo, drawn[slo.pk], now) for slo in shown], len(found) > PAGE_SIZE
    )


def count_slos() -> SloBoardCounts:
    """Count all SLOs by condition, in one query."""
    counted = Slo.objects.present().aggregate(
        firing=Count("pk", filter=_FIRES),
        paging=Count("pk", filter=_PAGES),
        spent=Count("pk", filter=_IS_SPENT),
        unknown=Count("pk", filter=_IS_UNKNOWN),
        known=Count("pk"),
        minute=Max("status__minute"),
    )
    minute = counted.pop("minute")
    return SloBoardCounts(**counted, judged_at=None if minute is None else end_of(minute))


def list_services() -> list[str]:
    """Return the services to filter by; one more than `MAX_SERVICES` if there are too many."""
    named = Slo.objects.present().exclude(service="").order_by("service")
    return list(named.values_list("service", flat=True).distinct()[: MAX_SERVICES + 1])


def _filter_slos(filters: SloBoardFilters) -> SloQuerySet:
    rows = Slo.objects.present()
    if filters.state:
        rows = rows.filter(_BY_STATE[filters.state])
    if filters.service:
        rows = rows.filter(service=filters.service)
    if filters.q:
        rows = rows.annotate(lower_name=Lower("name"), lower_owner=Lower("owner")).filter(
            Q(lower_name__contains=filters.q)
            | Q(service__contains=filters.q)
            | Q(lower_owner__contains=filters.q)
        )
    return rows


def _make_row(slo: Slo, spark: Sparkline, now: datetime) -> SloBoardRow:
    status = getattr(slo, "status", None)
    late = status is not None and status.minute < last_ended(now) - LATE_MINUTES
    return SloBoardRow(slo, status, spark, late)
