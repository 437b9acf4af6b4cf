"""Error budgets in the weekly report."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Count, Q
from django.urls import reverse
from django.utils import timezone

from controlplane.core.page_registry import REPORT_SECTIONS, Chart, ReportRow, ReportSection
from slo.arithmetic.minutes import last_ended
from slo.evaluation import budgets
from slo.evaluation.budgets import SpentBudget
from slo.models import Alert, Slo

MAX_ROWS = 50
CHARTS = 3
LOW = 0.25
"""With a smaller share of the budget left, somebody should look before it is gone."""
DAY = timedelta(days=1)

BudgetRow = tuple[Slo, SpentBudget, Mapping[str, int]]


@REPORT_SECTIONS.add(64)
def budgets_section(start: datetime, end: datetime, now: datetime) -> ReportSection:
    """Return each SLO's budget left, spent in the week, and its alerts, the worst first."""
    until = min(end, now)
    days = [at for at in (start + DAY * number for number in range(7)) if at < until]
    edges = [*map(last_ended, days), last_ended(until)]
    slos = list(Slo.objects.present().order_by("name"))
    spent = budgets.load_spent(slos, edges)
    called = _count_alerts(start, end) if slos else {}
    nothing = SpentBudget(None, ())
    budget_rows = [(slo, spent.get(slo.pk, nothing), called.get(slo.pk, {})) for slo in slos]
    budget_rows.sort(key=_sort_key)
    return ReportSection(
        slug="budgets",
        title="Budgets spent",
        summary=_summarize(budget_rows),
        tone=_tone(budget_rows),
        columns=("objective", "service", "target", "left", "spent_this_week", "pages", "tickets"),
        rows=tuple(_row(*one) for one in budget_rows[:MAX_ROWS]),
        total=len(budget_rows),
        charts=tuple(_chart(slo, one, days) for slo, one, _ in _spending(budget_rows)[:CHARTS]),
    )


def _count_alerts(start: datetime, end: datetime) -> dict[int, Mapping[str, int]]:
    rows = Alert.objects.filter(slo__isnull=False, opened_at__gte=start, opened_at__lt=end)
    counted = rows.values_list("slo_id").annotate(
        page=Count("pk", filter=Q(label="page")), ticket=Count("pk", filter=Q(label="ticket"))
    )
    return {pk: {"page": page, "ticket": ticket} for pk, page, ticket in counted.order_by() if pk}


def _sort_key(one: BudgetRow) -> tuple[bool, float, float, str]:
    """Sort known budgets first, by what is left, then by what was spent."""
    slo, spent, _ = one
    left = spent.remaining_ratio
    return left is None, left or 0.0, -(spent.in_all or 0.0), slo.name


def _spending(budget_rows: Sequence[BudgetRow]) -> list[BudgetRow]:
    """Return the SLOs that spent budget, most first."""
    found = [one for one in budget_rows if one[1].in_all]
    return sorted(found, key=lambda one: (-(one[1].in_all or 0.0), one[0].name))


def _tone(budget_rows: Sequence[BudgetRow]) -> str:
    left = [one.remaining_ratio for _, one, _ in budget_rows if one.remaining_ratio is not None]
    if any(one <= 0 for one in left):
        return "bad"
    if any(one < LOW for one in left):
        return "warn"
    return "unknown" if len(left) < len(budget_rows) else "good"


def _row(slo: Slo, spent: SpentBudget, called: Mapping[str, int]) -> ReportRow:
    cells = {
        "objective": slo.name,
        "service": slo.service,
        "target": percent(float(slo.target), digits=6),
        "left": percent(spent.remaining_ratio),
        "spent_this_week": percent(spent.in_all),
        "pages": called.get("page", 0),
        "tickets": called.get("ticket", 0),
    }
    return ReportRow(cells, reverse("slo_page", args=[slo.name]))


def _summarize(budget_rows: Sequence[BudgetRow]) -> str:
    if not budget_rows:
        return "There is no SLO."
    ratios = [(slo.name, one.remaining_ratio) for slo, one, _ in budget_rows]
    left = [(name, ratio) for name, ratio in ratios if ratio is not None]
    gone = [name for name, ratio in left if ratio <= 0]
    low = [name for name, ratio in left if 0 < ratio < LOW]
    unknown = len(budget_rows) - len(left)
    said = []
    if gone:
        said.append(f"{_named(gone)} {'has' if len(gone) == 1 else 'have'} no budget left.")
    if low:
        said.append(f"{_named(low)} {'has' if len(low) == 1 else 'have'} less than a quarter.")
    if not said and left:
        said.append("Every budget that is known has a quarter left at least.")
    pages = sum(called.get("page", 0) for *_, called in budget_rows)
    tickets = sum(called.get("ticket", 0) for *_, called in budget_rows)
    if pages or tickets:
        said.append(f"{_counted(pages, 'page')} and {_counted(tickets, 'ticket')} in the week.")
    if unknown:
        said.append(f"Of {_counted(unknown, 'SLO')} nothing is known.")
    return " ".join(said)


def _chart(slo: Slo, spent: SpentBudget, days: Sequence[datetime]) -> Chart:
    bars = tuple(
        (f"{timezone.localtime(at):%a %-d}", round((part or 0.0) * 100, 2))
        for at, part in zip(days, spent.parts, strict=False)
    )
    each = ", ".join(f"{label} {value:g}" for label, value in bars)
    return Chart(
        title=f"{slo.name}: budget spent a day",
        unit="percent",
        alt=f"Of the error budget of {slo.name}, percent spent a day: {each}.",
        bars=bars,
    )


def percent(share: float | None, digits: int = 2) -> str:
    """Format a share, such as `82.4 %`; empty if unknown."""
    if share is None:
        return ""
    shown = f"{round(share * 100, digits) + 0.0:,.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.')} %"


def _named(names: Sequence[str]) -> str:
    some = names[:3]
    if len(names) > len(some):
        return f"{', '.join(some)} and {len(names) - len(some)} more"
    return " and ".join(filter(None, (", ".join(some[:-1]), some[-1])))


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
