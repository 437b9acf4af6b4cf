"""Data of the plots of an SLO: burn rates over a span, and its budget over the period."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from slo.arithmetic.evaluate import burn_rate, round_ratio
from slo.arithmetic.minutes import MINUTES_A_DAY, end_of, last_ended
from slo.arithmetic.objective import MinuteSpan, Objective
from slo.arithmetic.windows import (
    CounterLookup,
    WindowCounts,
    measure_window,
    merge_spans,
    window_minutes,
)
from slo.counters import reader
from slo.evaluation import objective_loader
from slo.models import Sli, Slo

MAX_POINTS = 480
MAX_CHECKS = 10_000
"""Most burn rates to compute for one line, including minutes between its points."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
BUDGET_POINTS = 360
RANGES = {"6h": 360, "24h": MINUTES_A_DAY, "7d": 7 * MINUTES_A_DAY, "30d": 30 * MINUTES_A_DAY}
USUAL_RANGE = "24h"
MIN_MINUTES, MAX_MINUTES = 10, 92 * MINUTES_A_DAY
MAX_AGE = timedelta(days=400)


@dataclass(frozen=True)
class BurnLine:
    """The burn rates over one window (`1h`), each the highest since the previous point."""

    window: str
    rates: tuple[float | None, ...]


@dataclass(frozen=True)
class BurnPlot:
    """Burn rates at `minutes`, which are `step` minutes apart, except the last.

    Rates are None where unknown.
    """

    minutes: tuple[int, ...]
    step: int
    lines: tuple[BurnLine, ...]


@dataclass(frozen=True)
class BudgetPlot:
    """The share of the budget left at each of `minutes`; both are empty if it is unknown."""

    minutes: tuple[int, ...]
    left: tuple[float, ...]


@dataclass(frozen=True)
class UsagePart:
    """Events from `begins` to `ends`, and the budget they spent.

    `spent` in the part and `left` at its end are shares of the whole period's budget, None where
    unknown.
    """

    begins: datetime
    ends: datetime
    total: float
    bad: float
    burn_rate: float | None
    spent: float | None = None
    left: float | None = None


def load_burn_plot(slo: Slo, first: int, last: int) -> BurnPlot:
    """Return burn rates over each window of the rules, from minute `first` to minute `last`."""
    step = plot_step(last - first)
    points = tuple(sorted({*range(-(-first // step) * step, last + 1, step), last}))
    objective, spans, sli = _load_inputs(slo, end_of(first))
    names = tuple(name for name in objective.windows if _is_of_a_rule(objective, name))
    if sli is None or sli.first is None:
        return BurnPlot((), step, tuple(BurnLine(name, ()) for name in names))
    longest = max(window_minutes(name) for name in names)
    counts = reader.load_history(sli.pk, points[0] - step - longest, last).counts_at
    lines = tuple(
        BurnLine(name, _worst_rates(objective, spans, counts, name, points, step)) for name in names
    )
    return BurnPlot(points, step, lines)


def load_budget_plot(slo: Slo, last: int) -> BudgetPlot:
    """Return the budget left at points of the SLO's period that ends with minute `last`."""
    objective, spans, sli = _load_inputs(slo, end_of(last - slo.window_days * MINUTES_A_DAY))
    begin = last - objective.period
    step = max(1, objective.period // BUDGET_POINTS)
    points = tuple(sorted({*range(begin, last + 1, step), last}))
    if sli is None or sli.first is None or sli.first >= last:
        return BudgetPlot((), ())
    counts = _load_counts(sli, points, spans)
    allowed = _allowed_bad(objective, measure_window(objective.period, last, counts, spans))
    if not allowed:
        return BudgetPlot((), ())
    left = [1.0]
    for earlier, later in pairwise(points):
        part = measure_window(later - earlier, later, counts, spans)
        left.append(left[-1] - float(part.bad) / allowed)
    return BudgetPlot(points, tuple(round_ratio(one) for one in left))


def load_usage(slo: Slo, edges: Sequence[int], last: int) -> list[UsagePart]:
    """Return events and budget spent between consecutive minutes of `edges`, the newest first.

    The budget is that of the period that ends with minute `last`.
    """
    objective, spans, sli = _load_inputs(
        slo, end_of(min(edges[0], last - slo.window_days * MINUTES_A_DAY))
    )
    if sli is None or sli.first is None:
        return []
    begin = last - objective.period
    counts = _load_counts(sli, (*edges, begin, last), spans)
    allowed = _allowed_bad(objective, measure_window(objective.period, last, counts, spans))
    found = []
    for earlier, later in pairwise(edges):
        one = measure_window(later - earlier, later, counts, spans)
        is_inside = allowed > 0 and earlier >= begin
        found.append(
            UsagePart(
                begins=end_of(earlier),
                ends=end_of(later),
                total=float(one.total),
                bad=float(one.bad),
                burn_rate=burn_rate(one, objective),
                spent=float(one.bad) / allowed if is_inside and one.total else None,
                left=1 - float(measure_window(later - begin, later, counts, spans).bad) / allowed
                if is_inside
                else None,
            )
        )
    return found[::-1]


def plot_step(minutes: int) -> int:
    """Return the interval between points, in minutes, of a plot over this many minutes."""
    return next((step for step in STEPS if minutes <= step * MAX_POINTS), STEPS[-1])


def _worst_rates(
    objective: Objective,
    spans: Sequence[MinuteSpan],
    counts: CounterLookup,
    name: str,
    points: Sequence[int],
    step: int,
) -> tuple[float | None, ...]:
    minutes = window_minutes(name)
    interval = max(1, min(step, minutes // 2), (points[-1] - points[0]) // MAX_CHECKS)
    found: list[float | None] = []
    before = points[0] - 1
    for point in points:
        windows = (
            measure_window(minutes, at, counts, spans) for at in range(point, before, -interval)
        )
        rates = (burn_rate(one, objective) for one in windows)
        found.append(max((rate for rate in rates if rate is not None), default=None))
        before = point
    return tuple(found)


def _allowed_bad(objective: Objective, whole: WindowCounts) -> float:
    """Return how many events of a period may be bad, 0 if the period is unknown."""
    if not whole.is_known(objective.min_events):
        return 0.0
    return float(whole.total) * float(objective.budget)


def _is_of_a_rule(objective: Objective, name: str) -> bool:
    if not objective.rules:
        return name in ("1h", "6h")
    return any(name in (rule.long, rule.short) for rule in objective.rules)


def _load_inputs(slo: Slo, since: datetime) -> tuple[Objective, tuple[MinuteSpan, ...], Sli | None]:
    spans = merge_spans(objective_loader.load_exclusions([slo.pk], since).get(slo.pk, ()))
    return objective_loader.load_objective(slo), spans, Sli.objects.filter(slo=slo).first()


def _load_counts(sli: Sli, minutes: Sequence[int], spans: Sequence[MinuteSpan]) -> CounterLookup:
    low, high = min(minutes), max(minutes)
    edges = {min(max(edge, low), high) for span in spans for edge in span}
    # Excluded spans are cut at the ends of a window, which are all among these minutes.
    found = reader.load_counts({sli.pk: {*minutes, *edges}})
    return lambda minute: found[sli.pk, minute]


@dataclass(frozen=True)
class PlotSpan:
    """The span of a plot, from the end of minute `first` to the end of `last`.

    `name` is one of `RANGES`, empty for a custom span.
    """

    name: str
    first: int
    last: int

    @property
    def since(self) -> datetime:
        return end_of(self.first)

    @property
    def until(self) -> datetime:
        return end_of(self.last)


def parse_span(query: Any, now: datetime) -> PlotSpan:
    """Return the span in a URL's query: `range=24h`, or `from` and `to` in Unix seconds.

    A custom span is clamped to the allowed length and age. Without a valid span, return the last
    day.
    """
    ended = last_ended(now)
    begin, end = _parse_seconds(query.get("from", "")), _parse_seconds(query.get("to", ""))
    oldest = last_ended(now - MAX_AGE)
    if begin is not None and end is not None and begin < end:
        last = min(ended, max(-(-end // 60), oldest + MIN_MINUTES))
        first = max(begin // 60, last - MAX_MINUTES, oldest)
        return PlotSpan("", min(first, last - MIN_MINUTES), last)
    name = query.get("range", "")
    name = name if name in RANGES else USUAL_RANGE
    return PlotSpan(name, ended - RANGES[name], ended)


def _parse_seconds(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else None
