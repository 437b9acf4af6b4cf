"""The last day of many SLOs at a glance: how fast each burned in every half hour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from slo.arithmetic.counts import Count
from slo.arithmetic.evaluate import burn_rate
from slo.arithmetic.minutes import end_of, last_ended
from slo.arithmetic.objective import Objective, Span
from slo.arithmetic.windows import Counts, merged, window
from slo.counters import reader
from slo.evaluation import objective_loader
from slo.models import Sli, Slo

MINUTES, PARTS = 30, 48


@dataclass(frozen=True)
class Spark:
    """Burn rates of equal parts of a span, the last one just over; null where nothing is known.
    `limit` is the least rate that a rule pages at, null if none does."""

    rates: tuple[float | None, ...]
    limit: float | None = None

    @property
    def most(self) -> float | None:
        return max((rate for rate in self.rates if rate is not None), default=None)

    @property
    def unknown_minutes(self) -> int:
        return MINUTES * self.rates.count(None)


NOTHING = Spark((None,) * PARTS)


def of(slos: Sequence[Slo], now: datetime) -> dict[int, Spark]:
    """By id of the SLO; two queries whatever the number."""
    last = last_ended(now)
    edges = range(last - PARTS * MINUTES, last + 1, MINUTES)
    slis = {slo.pk: sli.pk for slo in slos if (sli := _counted(slo)) is not None}
    excluded = objective_loader.exclusions([*slis], end_of(edges[0])) if slis else {}
    spans = {pk: merged(excluded.get(pk, ())) for pk in slis}
    found = reader.counts({sli: _minutes(edges, spans[pk]) for pk, sli in slis.items()})
    counts = {pk: _lookup(found, sli) for pk, sli in slis.items()}
    return {
        slo.pk: _spark(objective_loader.objective(slo), edges, counts[slo.pk], spans[slo.pk])
        if slo.pk in slis
        else NOTHING
        for slo in slos
    }


def _spark(
    objective: Objective, edges: Sequence[int], counts: Counts, spans: Sequence[Span]
) -> Spark:
    limits = [rule.burn_rate for rule in objective.rules if rule.severity == "page"]
    rates = (burn_rate(window(MINUTES, edge, counts, spans), objective) for edge in edges[1:])
    return Spark(tuple(rates), float(min(limits)) if limits else None)


def _minutes(edges: Sequence[int], spans: Sequence[Span]) -> set[int]:
    """Every minute that is looked up: windows end there, and excluded spans within them."""
    low, high = edges[0], edges[-1]
    return {*edges, *(min(max(edge, low), high) for span in spans for edge in span)}


def _lookup(found: Mapping[tuple[int, int], Count], sli: int) -> Counts:
    return lambda minute: found[sli, minute]


def _counted(slo: Slo) -> Sli | None:
    """Its counters, if anything was ever counted."""
    sli = getattr(slo, "sli", None)
    return sli if sli is not None and sli.first is not None else None
