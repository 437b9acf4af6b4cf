"""Error budget spent in any span of time, and the effect of an exclusion on the budget.

Budgets spent or left are shares of the budget of the SLO's whole period (such as 30 days), which
ends when the span ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

from slo.arithmetic import evaluate
from slo.arithmetic.evaluate import burn_rate, round_ratio
from slo.arithmetic.minutes import MINUTES_A_DAY, end_of
from slo.arithmetic.objective import MinuteSpan, Objective
from slo.arithmetic.windows import CounterValues, WindowCounts, measure_window, merge_spans
from slo.counters import reader
from slo.models import Sli, Slo

from . import objective_loader


@dataclass(frozen=True)
class SloCounters:
    """An SLO's objective, its excluded spans (merged), and its counters at some minutes.

    `counts` are counters by SLI id and minute, also of other SLIs; `sli` is the SLO's own SLI.
    """

    objective: Objective
    excluded: tuple[MinuteSpan, ...]
    sli: int
    counts: Mapping[tuple[int, int], CounterValues]

    def measure(self, start: int, end: int) -> WindowCounts:
        """Return the event counts from the end of minute `start` to the end of minute `end`."""
        return measure_window(
            end - start, end, lambda minute: self.counts[self.sli, minute], self.excluded
        )

    def measure_period(self, last: int) -> WindowCounts:
        """Return the event counts of the objective's whole period that ends with minute `last`."""
        return self.measure(last - self.objective.period, last)

    def remaining_ratio(self, last: int) -> float | None:
        """Return the share of the period's budget that is left at the end of minute `last`."""
        return evaluate.remaining_ratio(burn_rate(self.measure_period(last), self.objective))


@dataclass(frozen=True)
class SpentBudget:
    """The budget left at the end of a span, and spent in each part of it; None where unknown."""

    remaining_ratio: float | None
    parts: tuple[float | None, ...]

    @property
    def in_all(self) -> float | None:
        known = [one for one in self.parts if one is not None]
        return round_ratio(sum(known)) if known else None


@dataclass(frozen=True)
class ExclusionEffect:
    """The budget left without and with an exclusion, and the events that the exclusion removes."""

    before: float | None
    after: float | None
    bad: float
    total: float


def load_counters(slos: Sequence[Slo], edges: Sequence[int]) -> dict[int, SloCounters]:
    """Return, by SLO id, the counters needed to measure spans between the minutes `edges`.

    `edges` are in ascending order. The whole period up to the last edge can be measured too. SLOs
    without counters are left out.
    """
    rows = Sli.objects.filter(slo__in=[slo.pk for slo in slos], first__isnull=False)
    slis = dict(rows.values_list("slo_id", "pk"))
    longest = timedelta(days=max((slo.window_days for slo in slos), default=1))
    excluded = objective_loader.load_exclusions([*slis], end_of(edges[0]) - longest) if slis else {}
    counted = {
        slo.pk: SloCounters(
            objective_loader.load_objective(slo),
            merge_spans(excluded.get(slo.pk, ())),
            slis[slo.pk],
            {},
        )
        for slo in slos
        if slo.pk in slis
    }
    # The edges, the start of each period, and the bounds of excluded spans.
    needed = {}
    for one in counted.values():
        first, last = edges[-1] - one.objective.period, edges[-1]
        bounds = {edge for span in one.excluded for edge in span}
        inside = (edge for edge in bounds if min(first, edges[0]) < edge < last)
        needed[one.sli] = {first, *edges, *inside}
    slice_targets = {one.sli: one.objective.slice_target for one in counted.values()}
    counts = reader.load_counts(needed, slice_targets)
    return {pk: replace(one, counts=counts) for pk, one in counted.items()}


def load_spent(slos: Sequence[Slo], edges: Sequence[int]) -> dict[int, SpentBudget]:
    """Return the budget spent between each two consecutive minutes of `edges`, by SLO id."""
    spent = {}
    for pk, counted in load_counters(slos, edges).items():
        left = counted.remaining_ratio(edges[-1])
        parts: list[float | None] = [None] * (len(edges) - 1)
        if left is not None:
            allowed = counted.measure_period(edges[-1]).total * Fraction(counted.objective.budget)
            windows = (counted.measure(start, end) for start, end in pairwise(edges))
            parts = [round_ratio(float(one.bad / allowed)) for one in windows]
        spent[pk] = SpentBudget(left, tuple(parts))
    return spent


def estimate_exclusion(slo: Slo, span: MinuteSpan, at: int) -> ExclusionEffect:
    """Return the effect of excluding `span` on the budget at the end of minute `at`."""
    start, end = max(span[0], at - slo.window_days * MINUTES_A_DAY), min(span[1], at)
    edges = (start, end, at) if start < end else (at, at)
    before = load_counters([slo], edges).get(slo.pk)
    if before is None:
        return ExclusionEffect(None, None, 0, 0)
    after = replace(before, excluded=merge_spans((*before.excluded, span)))
    events = before.measure(start, end) if start < end else None
    return ExclusionEffect(
        before=before.remaining_ratio(at),
        after=after.remaining_ratio(at),
        bad=float(events.bad) if events else 0.0,
        total=float(events.total) if events else 0.0,
    )
