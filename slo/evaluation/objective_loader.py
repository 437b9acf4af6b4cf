"""Objectives for the arithmetic, loaded from SLO rows."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from slo.arithmetic.minutes import last_ended, minute_of
from slo.arithmetic.objective import BurnRateRule, MinuteSpan, Objective
from slo.models import Exclusion, Slo


def load_objective(slo: Slo, excluded: Sequence[MinuteSpan] = ()) -> Objective:
    """Return the objective of an SLO.

    A broken document raises KeyError or ArithmeticError.
    """
    return _objective(
        slo.target, slo.window_days, parse_rules(slo.rules), slo.min_events, tuple(excluded)
    )


def parse_rules(documents: Sequence[Mapping[str, Any]]) -> tuple[BurnRateRule, ...]:
    """Return stored rules; burn rates are the decimals as written, not binary fractions."""
    return tuple(
        _rule(one["long"], one["short"], str(one["burn_rate"]), one["severity"])
        for one in documents
    )


def load_exclusions(
    slos: Collection[int] | None, since: datetime
) -> dict[int, tuple[MinuteSpan, ...]]:
    """Return the excluded spans, by SLO, that end after `since`; of all SLOs if `slos` is None."""
    rows = Exclusion.objects.filter(removed_at__isnull=True, ends_at__gt=since)
    if slos is not None:
        rows = rows.filter(slo__in=slos)
    found: dict[int, tuple[MinuteSpan, ...]] = {}
    for slo, starts_at, ends_at in rows.values_list("slo_id", "starts_at", "ends_at"):
        # Spans are whole minutes; if one is not, the minute it cuts is excluded too.
        found[slo] = (*found.get(slo, ()), (last_ended(starts_at), minute_of(ends_at)))
    return found


@lru_cache(maxsize=4096)
def _objective(
    target: Decimal,
    window_days: int,
    rules: tuple[BurnRateRule, ...],
    min_events: int,
    excluded: tuple[MinuteSpan, ...],
) -> Objective:
    """Return a cached objective: many SLOs share one, and need it again every minute."""
    return Objective(target, window_days, rules, min_events, excluded)


@lru_cache(maxsize=4096)
def _rule(long: str, short: str, burn_rate: str, severity: str) -> BurnRateRule:
    return BurnRateRule(long, short, Decimal(burn_rate), severity)
