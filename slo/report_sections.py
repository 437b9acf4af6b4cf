"""Error budgets in the weekly report."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest

from django.db.models import Count, Q
from django.utils import timezone

from controlplane.core.page_registry import (
    REPORT_SECTIONS,
    Chart,
    IsOwned,
    ReportRow,
    ReportSection,
)
from controlplane.core.team_filter import keep_owned
from slo.alerts.notifications import slo_path
from slo.arithmetic.minutes import last_ended
from slo.evaluation import budgets
from slo.evaluation.budgets import SpentBudget
from slo.models import Alert, Slo
from switches.report.section_rows import pluralize
from switches.scopes import join_words

MAX_ROWS = 50
MAX_NAMED = 3
CHARTS = 3
LOW = 0.25
"""An SLO with less than this share of its budget left is highlighted."""
DAY = timedelta(days=1)

BudgetRow = tuple[Slo, SpentBudget, Mapping[str, int]]


@REPORT_SECTIONS.add(64)
def budgets_section(
    start: datetime, end: datetime, now: datetime, is_owned: IsOwned = None
) -> ReportSection:
    """Return the report's budget section: budget left and spent, and alerts, of each SLO."""
    until = min(end, now)
    days = [at for at in (start + DAY * number for number in range(7)) if at < until]
    edges = [*map(last_ended, days), last_ended(until)]
    week = [start + DAY * number for number in range(7)]
    present = keep_owned(Slo.objects.present(), "name", is_owned, "slo:{}".format)
    slos = list(present.order_by("name"))
    spent = budgets.load_spent(slos, edges)
    opened = Alert.objects.filter(slo__isnull=False, opened_at__gte=start, opened_at__lt=end)
    pages, tickets = (Count("pk", filter=Q(label=label)) for label in ("page", "ticket"))
    counted = opened.order_by().values_list("slo_id").annotate(page=pages, ticket=tickets)
    alert_counts = {pk: {"page": page, "ticket": ticket} for pk, page, ticket in counted if pk}
    nothing = SpentBudget(None, ())
    budget_rows = [(slo, spent.get(slo.pk, nothing), alert_counts.get(slo.pk, {})) for slo in slos]
    budget_rows.sort(key=_sort_key)
    by_spent = sorted(budget_rows, key=lambda one: (-(one[1].in_all or 0.0), one[0].name))
    return ReportSection(
        slug="budgets",
        title="Error budgets",
        summary=_summarize(budget_rows),
        tone=_choose_tone(budget_rows),
        headline=_choose_headline(budget_rows),
        columns=("objective", "service", "target", "left", "spent_this_week", "pages", "tickets"),
        rows=tuple(
            ReportRow(
                {
                    "objective": slo.name,
                    "service": slo.service,
                    "target": format_percent(float(slo.target), digits=6),
                    "left": format_percent(one.remaining_ratio),
                    "spent_this_week": format_percent(one.in_all),
                    "pages": counts.get("page", 0),
                    "tickets": counts.get("ticket", 0),
                },
                slo_path(slo),
            )
            for slo, one, counts in budget_rows[:MAX_ROWS]
        ),
        total=len(budget_rows),
        charts=tuple(
            _make_chart(slo, one, week) for slo, one, _ in by_spent[:CHARTS] if one.in_all
        ),
    )


def _sort_key(one: BudgetRow) -> tuple[bool, float, float, str]:
    slo, spent, _ = one
    left = spent.remaining_ratio
    return left is None, left or 0.0, -(spent.in_all or 0.0), slo.name


def _choose_tone(budget_rows: Sequence[BudgetRow]) -> str:
    left = [one.remaining_ratio for _, one, _ in budget_rows if one.remaining_ratio is not None]
    if any(one <= 0 for one in left):
        return "bad"
    if any(one < LOW for one in left):
        return "warn"
    return "unknown" if len(left) < len(budget_rows) else "good"


def _choose_headline(budget_rows: Sequence[BudgetRow]) -> str:
    left = [one.remaining_ratio for _, one, _ in budget_rows if one.remaining_ratio is not None]
    gone = sum(ratio <= 0 for ratio in left)
    low = sum(0 < ratio < LOW for ratio in left)
    total = pluralize(len(budget_rows), "error budget")
    if gone:
        return f"{gone:,} of {total} spent"
    if low:
        return f"{low:,} of {total} below {LOW:.0%}".replace("%", " %")
    return f"{len(budget_rows) - len(left):,} of {total} unknown"


def _summarize(budget_rows: Sequence[BudgetRow]) -> str:
    if not budget_rows:
        return "No SLOs."
    ratios = [(slo.name, one.remaining_ratio) for slo, one, _ in budget_rows]
    left = [(name, ratio) for name, ratio in ratios if ratio is not None]
    gone = [name for name, ratio in left if ratio <= 0]
    low = [name for name, ratio in left if 0 < ratio < LOW]
    unknown = len(budget_rows) - len(left)
    sentences = [
        f"{_join_names(names)} {'has' if len(names) == 1 else 'have'} {what}."
        for names, what in ((gone, "no budget left"), (low, "less than a quarter"))
        if names
    ]
    if not sentences and left:
        sentences.append("Every known budget has at least a quarter left.")
    pages = sum(alert_counts.get("page", 0) for *_, alert_counts in budget_rows)
    tickets = sum(alert_counts.get("ticket", 0) for *_, alert_counts in budget_rows)
    if pages or tickets:
        sentences.append(
            f"{pluralize(pages, 'page')} and {pluralize(tickets, 'ticket')} in the week."
        )
    if unknown:
        sentences.append(f"Too little data for {pluralize(unknown, 'budget')}.")
    return " ".join(sentences)


def _make_chart(slo: Slo, spent: SpentBudget, days: Sequence[datetime]) -> Chart:
    bars = tuple(
        (f"{timezone.localtime(at):%a %-d}", None if part is None else round(part * 100, 2))
        for at, part in zip_longest(days, spent.parts)
    )
    each = ", ".join(f"{label} {value:g}" for label, value in bars if value is not None)
    return Chart(
        title=f"{slo.name}: budget spent per day",
        unit="percent",
        alt=f"Percent of the error budget of {slo.name} spent per day: {each}.",
        bars=bars,
    )


def format_percent(share: float | None, digits: int = 2) -> str:
    if share is None:
        return ""
    shown = f"{round(share * 100, digits) + 0.0:,.{digits}f}"
    return f"{shown.rstrip('0').rstrip('.')} %"


def _join_names(names: Sequence[str]) -> str:
    more = [f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    return join_words([*names[:MAX_NAMED], *more])
