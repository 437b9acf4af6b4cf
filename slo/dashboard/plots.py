"""Data of the plots of an SLO: burn rates over a span, and its budget over the period."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from slo.arithmetic.evaluate import burn_rate, round_ratio
from slo.arithmetic.minutes import MINUTES_A_DAY, end_of, last_ended, window_minutes
from slo.arithmetic.windows import measure_window, merge_spans
from slo.counters import reader
from slo.evaluation import budgets, objective_loader
from slo.models import Sli, Slo

MAX_POINTS = 720
MAX_CHECKS = 10_000
"""Most burn rates to compute for one line, including minutes between its points."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
BUDGET_POINTS = 360
RANGES = {"6h": 360, "24h": MINUTES_A_DAY, "7d": 7 * MINUTES_A_DAY, "30d": 30 * MINUTES_A_DAY}
USUAL_RANGE = "24h"
MIN_MINUTES, MAX_MINUTES = 10, 92 * MINUTES_A_DAY
MAX_AGE = timedelta(days=400)


@dataclass(frozen=True)
class PlotLines:
    """The values of a plot's `lines` at `minutes`, which are `step` apart, except for the last.

    A line of burn rates is named by its window (`1h`). Its value is the highest burn rate since the
    minute before in `minutes`, None if unknown.
    """

    minutes: tuple[int, ...]
    step: int
    lines: dict[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class UsagePart:
    """One part of an SLO's history, from `begins` to `ends`: its events and the budget they spent.

    `spent` is the share of the period's budget that the part spent, and `left` the share left at
    its end. Both are None if unknown.
    """

    begins: datetime
    ends: datetime
    total: float
    bad: float
    burn_rate: float | None
    spent: float | None = None
    left: float | None = None


def load_burn_plot(slo: Slo, first: int, last: int) -> PlotLines:
    """Return burn rates over each window of the rules, from minute `first` to minute `last`.

    Between the first point and the first counted minute there are no points, so that a short
    history has the resolution of its own length.
    """
    sli = Sli.objects.filter(slo=slo, first__isnull=False).first()
    counted = first if sli is None or sli.first is None else max(first, min(sli.first, last))
    # The interval between points, in minutes.
    step = next((step for step in STEPS if last - counted <= step * MAX_POINTS), STEPS[-1])
    fine = range(counted // step * step, last + 1, step)
    points = tuple(sorted({first, *(point for point in fine if point > first), last}))
    objective = objective_loader.load_objective(slo)
    spans = merge_spans(objective_loader.load_exclusions([slo.pk], end_of(first)).get(slo.pk, ()))
    names = [name for rule in objective.rules for name in (rule.long, rule.short)] or ["1h", "6h"]
    names = sorted(set(names), key=window_minutes)
    if sli is None:
        return PlotLines((), step, dict.fromkeys(names, ()))
    begin = points[0] - step - window_minutes(names[-1])
    history = reader.load_history(sli.pk, begin, last).by_slices(objective.slice_target)
    counts = history.counts_at
    lines = {}
    for name in names:
        minutes = window_minutes(name)
        interval = max(1, min(step, minutes // 2), (last - counted) // MAX_CHECKS)
        worst: list[float | None] = []
        before = points[0] - 1
        for point in points:
            checked = range(point, before, -interval)
            windows = (measure_window(minutes, at, counts, spans) for at in checked)
            rates = (burn_rate(one, objective) for one in windows)
            worst.append(max((rate for rate in rates if rate is not None), default=None))
            before = max(point, counted - step)
        lines[name] = tuple(worst)
    return PlotLines(points, step, lines)


def load_budget_plot(slo: Slo, last: int) -> PlotLines:
    """Return the line `left`: the share of the budget left over the period up to the minute `last`.

    It has no minutes if the budget is unknown.
    """
    period = slo.window_days * MINUTES_A_DAY
    step = max(1, period // BUDGET_POINTS)
    points = tuple(sorted({*range(last - period, last + 1, step), last}))
    left = [one.left for one in reversed(load_usage(slo, points)) if one.left is not None]
    if not left:
        return PlotLines((), 0, {"left": ()})
    return PlotLines(points, points[1] - points[0], {"left": tuple(map(round_ratio, (1.0, *left)))})


def load_usage(slo: Slo, edges: Sequence[int]) -> list[UsagePart]:
    """Return an SLO's history, split at the minutes `edges`, the newest part first.

    Budgets are shares of the budget of the period that ends with the last edge.
    """
    counted = budgets.load_counters([slo], edges).get(slo.pk)
    if counted is None:
        return []
    objective, whole = counted.objective, counted.measure_period(edges[-1])
    begin = edges[-1] - objective.period
    is_known = whole.is_known(objective.min_events)
    allowed = float(whole.total) * float(objective.budget)
    found = []
    for earlier, later in pairwise(edges):
        one = counted.measure(earlier, later)
        is_inside = is_known and earlier >= begin
        left = 1 - float(counted.measure(begin, later).bad) / allowed if is_inside else None
        found.append(
            UsagePart(
                begins=end_of(earlier),
                ends=end_of(later),
                total=float(one.total),
                bad=float(one.bad),
                burn_rate=burn_rate(one, objective),
                spent=float(one.bad) / allowed if is_inside and one.total else None,
                left=left,
            )
        )
    return found[::-1]


@dataclass(frozen=True)
class PlotSpan:
    """The span of a plot, between the ends of two minutes; `name` is one of `RANGES` or empty."""

    name: str
    first: int
    last: int

    @property
    def query(self) -> str:
        """The span as a URL query, for :func:`parse_span`."""
        if self.name:
            return f"range={self.name}"
        return f"from={int(self.since.timestamp())}&to={int(self.until.timestamp())}"

    @property
    def since(self) -> datetime:
        return end_of(self.first)

    @property
    def until(self) -> datetime:
        return end_of(self.last)


def parse_span(query: Any, now: datetime) -> PlotSpan:
    """Return the span in a URL's query: `range=24h`, or `from` and `to` in Unix seconds.

    Custom spans are limited in length and age. An invalid query means the last day.
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
