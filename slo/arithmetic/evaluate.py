"""Evaluation of an SLO at a minute, from its counters alone: for ticks, status and backtests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from controlplane.core.canonical import timestamp_or_none

from .minutes import end_of, window_minutes
from .objective import BurnRateRule, Objective
from .windows import CounterLookup, WindowCounts, has_recent_samples, measure_window, merge_spans

OK, FIRING, UNKNOWN = "ok", "firing", "unknown"
FORECAST_WINDOW = "6h"
"""The window whose burn rate is used to forecast when the budget will be spent."""
DIGITS = 6
"""Decimals of a ratio or burn rate in a response."""


@dataclass(frozen=True)
class RuleEvaluation:
    """A burn-rate rule and its state: `ok`, `firing` or `unknown`."""

    rule: BurnRateRule
    state: str

    def document(self) -> dict[str, Any]:
        return {**self.rule.document(), "state": self.state}


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of an SLO at a minute.

    `state` is the worst state of the rules; without rules, `ok` if any window is known.
    `burn_rates`, `coverage` and `windows` are keyed by window (`5m`). A burn rate is None if
    unknown; coverage is the share of the window's minutes with samples. `remaining_ratio` is the
    share of the period's budget that is left, negative if overspent. `exhausts_at` is the forecast
    time at which the budget is spent.
    """

    state: str
    burn_rates: Mapping[str, float | None]
    coverage: Mapping[str, float]
    rules: tuple[RuleEvaluation, ...]
    remaining_ratio: float | None
    exhausts_at: datetime | None
    windows: Mapping[str, WindowCounts] = field(default_factory=dict)
    has_recent_samples: bool = False

    @property
    def present_state(self) -> str:
        """The state to show: unknown instead of `ok` if no sample covers the last five minutes.

        A rule stays `ok` while a known window of it is quiet, even after the samples end.
        """
        return UNKNOWN if self.state == OK and not self.has_recent_samples else self.state

    def document(self) -> dict[str, Any]:
        budget = {
            "remaining_ratio": self.remaining_ratio,
            "exhausts_at": timestamp_or_none(self.exhausts_at),
        }
        return {
            "state": self.state,
            "burn_rates": dict(self.burn_rates),
            "budget": budget,
            "rules": [one.document() for one in self.rules],
            "coverage": dict(self.coverage),
        }


def evaluate(
    objective: Objective, at_minute: int, counts: CounterLookup, first: int | None
) -> Evaluation:
    """Return the evaluation of an objective at the end of a minute.

    `counts` looks up the counters at a minute; it must have those that
    :func:`windows.needed_minutes` lists. `first` is the minute of the SLI's first counter row, None
    if it has no rows. Before that minute, the SLO is unknown.
    """
    if first is None or at_minute < first:
        return unknown_evaluation(objective)
    excluded = merge_spans(objective.excluded)
    windows_by_name = {
        name: measure_window(window_minutes(name), at_minute, counts, excluded)
        for name in objective.windows
    }
    rates = {name: burn_rate(one, objective) for name, one in windows_by_name.items()}
    whole = measure_window(objective.period, at_minute, counts, excluded)
    left = remaining_ratio(burn_rate(whole, objective))
    rules = tuple(
        RuleEvaluation(rule, _rule_state(rule, objective, windows_by_name, rates))
        for rule in objective.rules
    )
    states = {one.state for one in rules}
    if not states:
        states = {UNKNOWN if all(rate is None for rate in rates.values()) else OK}
    return Evaluation(
        state=next(state for state in (FIRING, UNKNOWN, OK) if state in states),
        burn_rates=rates,
        coverage={name: one.coverage for name, one in windows_by_name.items()},
        rules=rules,
        remaining_ratio=left,
        exhausts_at=exhausts_at(left, rates[FORECAST_WINDOW], objective.period, at_minute),
        windows=windows_by_name,
        has_recent_samples=has_recent_samples(at_minute, counts),
    )


def unknown_evaluation(objective: Objective) -> Evaluation:
    return Evaluation(
        state=UNKNOWN,
        burn_rates=dict.fromkeys(objective.windows),
        coverage=dict.fromkeys(objective.windows, 0.0),
        rules=tuple(RuleEvaluation(rule, UNKNOWN) for rule in objective.rules),
        remaining_ratio=None,
        exhausts_at=None,
    )


def burn_rate(window: WindowCounts, objective: Objective) -> float | None:
    """Return the burn rate of a window, None if the window has too few events or samples."""
    if not window.is_known(objective.min_events):
        return None
    if not window.bad:
        return 0.0
    numerator, denominator = _bad_share(1, objective.target)
    return round_ratio(float(window.bad * denominator / (window.total * numerator)))


def format_burn_rate(rate: float | None) -> str:
    """Format a burn rate as a multiple of the allowed rate: `7.93×`, `1,000×`, `< 0.01×`."""
    if rate is None:
        return "unknown"
    if 0 < rate < 0.01:
        return "< 0.01×"
    return f"{rate:,.0f}×" if rate >= 100 else f"{rate:.3g}×"


def is_above(window: WindowCounts, objective: Objective, threshold: Decimal) -> bool:
    """Return True if the exact (not rounded) burn rate of a known window exceeds a threshold."""
    numerator, denominator = _bad_share(threshold, objective.target)
    return bool(window.bad * denominator > window.total * numerator)


def _rule_state(
    rule: BurnRateRule,
    objective: Objective,
    windows_by_name: Mapping[str, WindowCounts],
    rates: Mapping[str, float | None],
) -> str:
    """Return `firing` if both windows exceed the limit, `ok` if one does not, else `unknown`."""
    is_known = True
    for name in (rule.long, rule.short):
        if rates[name] is None:
            is_known = False
        elif not is_above(windows_by_name[name], objective, rule.burn_rate):
            return OK
    return FIRING if is_known else UNKNOWN


@lru_cache(maxsize=4096)
def _bad_share(burn_rate: Decimal | int, target: Decimal) -> tuple[int, int]:
    """Convert a burn rate to a share of bad events, as an exact fraction."""
    return (Fraction(burn_rate) * (1 - Fraction(target))).as_integer_ratio()


def remaining_ratio(burn_rate: float | None) -> float | None:
    """Return the share of the budget left (may be negative), given the period's burn rate."""
    return None if burn_rate is None else round_ratio(1 - burn_rate)


def exhausts_at(
    remaining_ratio: float | None, burn_rate: float | None, period: int, at_minute: int
) -> datetime | None:
    """Return when the rest of a period's budget will be spent if the burn rate stays the same.

    `period` is in minutes. None if the ratio or the burn rate is unknown, if no budget is left, or
    if the burn rate is at most 1.
    """
    if remaining_ratio is None or burn_rate is None or burn_rate <= 1 or remaining_ratio <= 0:
        return None
    lasts = timedelta(minutes=remaining_ratio * period / burn_rate)
    return (end_of(at_minute) + lasts).replace(microsecond=0)


def round_ratio(number: float) -> float:
    """Return a ratio rounded to `DIGITS` decimals, without a negative zero."""
    return round(number, DIGITS) + 0.0
