"""Error budget spent in any span of time, and the effect of an exclusion on the budget.

Budgets are shares (0 to 1) of the budget of the SLO's whole period, which ends with the span.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

from slo.arithmetic import evaluate, windows
from slo.arithmetic.evaluate import burn_rate, round_ratio
from slo.arithmetic.minutes import end_of
from slo.arithmetic.objective import MinuteSpan, Objective
from slo.arithmetic.windows import measure_window, merge_spans
from slo.counters import reader
from slo.models import Sli, Slo

from . import objective_loader


@dataclass(frozen=True)
class SpentBudget:
    """The budget left at the end of a span, and the budget spent in each part of the span.

    None where unknown.
    """

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


def load_spent(slos: Sequence[Slo], edges: Sequence[int]) -> dict[int, SpentBudget]:
    """Return the budget spent between consecutive minutes of `edges`, by SLO id."""
    slis = _load_slis(slos)
    longest = timedelta(days=max((slo.window_days for slo in slos), default=1))
    excluded = objective_loader.load_exclusions([*slis], end_of(edges[0]) - longest) if slis else {}
    objectives = {
        slo.pk: objective_loader.load_objective(slo, excluded.get(slo.pk, ()))
        for slo in slos
        if slo.pk in slis
    }
    counts = reader.load_counts(
        {slis[pk].pk: _needed_minutes(one, edges) for pk, one in objectives.items()}
    )
    return {
        pk: _compute_spent(objective, edges, lambda m, sli=slis[pk].pk: counts[sli, m])  # type: ignore[misc]
        for pk, objective in objectives.items()
    }


def estimate_exclusion(slo: Slo, span: MinuteSpan, at: int) -> ExclusionEffect:
    """Return the effect of excluding `span` on the budget at the end of minute `at`."""
    sli = _load_slis([slo]).get(slo.pk)
    if sli is None:
        return ExclusionEffect(None, None, 0, 0)
    since = end_of(at) - timedelta(days=slo.window_days)
    excluded = objective_loader.load_exclusions([slo.pk], since).get(slo.pk, ())
    present = objective_loader.load_objective(slo, excluded)
    after = objective_loader.load_objective(slo, (*excluded, span))
    start, end = max(span[0], at - present.period), min(span[1], at)
    edges = (start, end, at) if start < end else (at, at)
    needed = _needed_minutes(present, edges) | _needed_minutes(after, edges)
    loaded = reader.load_counts({sli.pk: needed})
    counts: windows.CounterLookup = lambda minute: loaded[sli.pk, minute]  # noqa: E731
    counts_in_span = (
        measure_window(end - start, end, counts, merge_spans(excluded)) if start < end else None
    )
    return ExclusionEffect(
        before=_remaining_ratio(present, at, counts),
        after=_remaining_ratio(after, at, counts),
        bad=float(counts_in_span.bad) if counts_in_span else 0.0,
        total=float(counts_in_span.total) if counts_in_span else 0.0,
    )


def _compute_spent(
    objective: Objective, edges: Sequence[int], counts: windows.CounterLookup
) -> SpentBudget:
    excluded = merge_spans(objective.excluded)
    whole = measure_window(objective.period, edges[-1], counts, excluded)
    left = evaluate.remaining_ratio(burn_rate(whole, objective))
    if left is None:
        return SpentBudget(None, (None,) * (len(edges) - 1))
    parts = (measure_window(end - start, end, counts, excluded) for start, end in pairwise(edges))
    allowed = whole.total * Fraction(objective.budget)
    return SpentBudget(left, tuple(round_ratio(float(one.bad / allowed)) for one in parts))


def _remaining_ratio(objective: Objective, at: int, counts: windows.CounterLookup) -> float | None:
    counts_in_span = measure_window(objective.period, at, counts, merge_spans(objective.excluded))
    return evaluate.remaining_ratio(burn_rate(counts_in_span, objective))


def _needed_minutes(objective: Objective, edges: Sequence[int]) -> set[int]:
    """Return the minutes to look up: `edges`, the period's start, and bounds of excluded spans."""
    last = edges[-1]
    first = last - objective.period
    within = {edge for span in merge_spans(objective.excluded) for edge in span}
    return {first, *edges, *(one for one in within if min(first, edges[0]) < one < last)}


def _load_slis(slos: Sequence[Slo]) -> dict[int, Sli]:
    rows = Sli.objects.filter(slo__in=[slo.pk for slo in slos], first__isnull=False)
    return {sli.slo_id: sli for sli in rows if sli.slo_id is not None}
