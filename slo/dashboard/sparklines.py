"""Sparklines of many SLOs: the burn rate of each half hour of the last day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from slo.arithmetic.counts import CounterValues
from slo.arithmetic.evaluate import burn_rate
from slo.arithmetic.minutes import end_of, last_ended
from slo.arithmetic.objective import MinuteSpan, Objective
from slo.arithmetic.windows import CounterLookup, measure_window, merge_spans
from slo.counters import reader
from slo.evaluation import objective_loader
from slo.models import Sli, Slo

PART_MINUTES, PARTS = 30, 48


@dataclass(frozen=True)
class Sparkline:
    """Burn rates of equal parts of a span, the last one just over; None where unknown.

    `limit` is the lowest rate at which a rule pages, None if none does.
    """

    rates: tuple[float | None, ...]
    limit: float | None = None

    @property
    def most(self) -> float | None:
        return max((rate for rate in self.rates if rate is not None), default=None)

    @property
    def unknown_minutes(self) -> int:
        return PART_MINUTES * self.rates.count(None)


EMPTY = Sparkline((None,) * PARTS)


def load_sparklines(slos: Sequence[Slo], now: datetime) -> dict[int, Sparkline]:
    """Return sparklines by SLO id; two queries whatever the number."""
    last = last_ended(now)
    edges = range(last - PARTS * PART_MINUTES, last + 1, PART_MINUTES)
    slis = {slo.pk: sli.pk for slo in slos if (sli := _sli_with_data(slo)) is not None}
    excluded = objective_loader.load_exclusions([*slis], end_of(edges[0])) if slis else {}
    spans = {pk: merge_spans(excluded.get(pk, ())) for pk in slis}
    found = reader.load_counts({sli: _needed_minutes(edges, spans[pk]) for pk, sli in slis.items()})
    counts = {pk: _lookup(found, sli) for pk, sli in slis.items()}
    return {
        slo.pk: _draw(objective_loader.load_objective(slo), edges, counts[slo.pk], spans[slo.pk])
        if slo.pk in slis
        else EMPTY
        for slo in slos
    }


def _draw(
    objective: Objective, edges: Sequence[int], counts: CounterLookup, spans: Sequence[MinuteSpan]
) -> Sparkline:
    limits = [rule.burn_rate for rule in objective.rules if rule.severity == "page"]
    rates = (
        burn_rate(measure_window(PART_MINUTES, edge, counts, spans), objective)
        for edge in edges[1:]
    )
    return Sparkline(tuple(rates), float(min(limits)) if limits else None)


def _needed_minutes(edges: Sequence[int], spans: Sequence[MinuteSpan]) -> set[int]:
    """Return every minute to look up: ends of parts, and of excluded spans within them."""
    low, high = edges[0], edges[-1]
    return {*edges, *(min(max(edge, low), high) for span in spans for edge in span)}


def _lookup(found: Mapping[tuple[int, int], CounterValues], sli: int) -> CounterLookup:
    return lambda minute: found[sli, minute]


def _sli_with_data(slo: Slo) -> Sli | None:
    """Return the SLO's counters, None if nothing was ever counted."""
    sli = getattr(slo, "sli", None)
    return sli if sli is not None and sli.first is not None else None
