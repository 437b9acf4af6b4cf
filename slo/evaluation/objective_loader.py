"""Loading of objectives from SLO rows."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from slo.arithmetic.minutes import last_ended, minute_of
from slo.arithmetic.objective import BurnRateRule, MinuteSpan, Objective
from slo.models import Exclusion, Slo


def load_objective(slo: Slo, excluded: Sequence[MinuteSpan] = ()) -> Objective:
    """Return the objective of an SLO. Raise KeyError or ArithmeticError for a broken document."""
    return _cached_objective(
        slo.target,
        slo.window_days,
        parse_rules(slo.rules),
        slo.min_events,
        tuple(excluded),
        slo.slice_target,
    )


def parse_rules(documents: Sequence[Mapping[str, Any]]) -> tuple[BurnRateRule, ...]:
    """Return burn-rate rules from an SLO's stored `rules`, with burn rates as exact decimals."""
    return tuple(
        _cached_rule(one["long"], one["short"], str(one["burn_rate"]), one["severity"])
        for one in documents
    )


def load_exclusions(
    slos: Collection[int] | None, since: datetime
) -> dict[int, tuple[MinuteSpan, ...]]:
    """Return excluded spans that end after `since`, by SLO id; of all SLOs if `slos` is None."""
    rows = Exclusion.objects.filter(removed_at__isnull=True, ends_at__gt=since)
    if slos is not None:
        rows = rows.filter(slo__in=slos)
    found: dict[int, tuple[MinuteSpan, ...]] = {}
    for slo, starts_at, ends_at in rows.values_list("slo_id", "starts_at", "ends_at"):
        # Spans are whole minutes; if one is not, the minute it cuts is excluded too.
        found[slo] = (*found.get(slo, ()), (last_ended(starts_at), minute_of(ends_at)))
    return found


_cached_objective = lru_cache(maxsize=4096)(Objective)
"""Cached, because many SLOs have equal objectives."""


@lru_cache(maxsize=4096)
def _cached_rule(long: str, short: str, burn_rate: str, severity: str) -> BurnRateRule:
    return BurnRateRule(long, short, Decimal(burn_rate), severity)
