"""Evaluation of an SLO at a minute, from its counters alone.

The evaluation tick, the status endpoint and backtests all use this one implementation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from controlplane.core.canonical import timestamp

from . import budget
from .objective import BurnRateRule, Objective
from .windows import CounterLookup, WindowCounts, measure_window, merge_spans, window_minutes

OK, FIRING, UNKNOWN = "ok", "firing", "unknown"
FORECAST_WINDOW = "6h"
"""The window whose burn rate forecasts when the budget will be spent."""


@dataclass(frozen=True)
class RuleEvaluation:
    """A burn-rate rule and its state: `ok`, `firing` or `unknown`."""

    rule: BurnRateRule
    state: str

    def document(self) -> dict[str, Any]:
        """Return the rule as the API shows it."""
        return {**self.rule.document(), "state": self.state}


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of an SLO at a minute.

    `burn_rates` (None where unknown) and `coverage` (the share of a window's minutes that
    samples cover, 0 to 1) are by window as written. `remaining_ratio` is the share of the
    period's budget that is left, negative if overspent. `windows` holds the counts of each
    window.
    """

    state: str
    burn_rates: Mapping[str, float | None]
    coverage: Mapping[str, float]
    rules: tuple[RuleEvaluation, ...]
    remaining_ratio: float | None
    exhausts_at: datetime | None
    windows: Mapping[str, WindowCounts] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the evaluation as the API shows it."""
        exhausts_at = None if self.exhausts_at is None else timestamp(self.exhausts_at)
        return {
            "state": self.state,
            "burn_rates": dict(self.burn_rates),
            "budget": {"remaining_ratio": self.remaining_ratio, "exhausts_at": exhausts_at},
            "rules": [one.document() for one in self.rules],
            "coverage": dict(self.coverage),
        }


def evaluate(
    objective: Objective, at_minute: int, counts: CounterLookup, first: int | None
) -> Evaluation:
    """Evaluate an objective at the end of a minute.

    `counts` looks up the counters of the minutes that :func:`windows.needed_minutes` names.
    `first` is the minute of the SLI's first row, None without any; before it, nothing is known.
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
    left = budget.remaining_ratio(burn_rate(whole, objective))
    rules = tuple(
        [
            RuleEvaluation(rule, _rule_state(rule, objective, windows_by_name, rates))
            for rule in objective.rules
        ]
    )
    return Evaluation(
        state=_overall_state(rules, rates.values()),
        burn_rates=rates,
        coverage={name: one.coverage for name, one in windows_by_name.items()},
        rules=rules,
        remaining_ratio=left,
        exhausts_at=budget.exhausts_at(left, rates[FORECAST_WINDOW], objective.period, at_minute),
        windows=windows_by_name,
    )


def unknown_evaluation(objective: Objective) -> Evaluation:
    """Return the evaluation of an objective without data."""
    return Evaluation(
        state=UNKNOWN,
        burn_rates=dict.fromkeys(objective.windows),
        coverage=dict.fromkeys(objective.windows, 0.0),
        rules=tuple(RuleEvaluation(rule, UNKNOWN) for rule in objective.rules),
        remaining_ratio=None,
        exhausts_at=None,
    )


def burn_rate(windows_by_name: WindowCounts, objective: Objective) -> float | None:
    """Return the burn rate of a window: bad events as a multiple of what the budget allows.

    None if the window is unknown.
    """
    if not windows_by_name.is_known(objective.min_events):
        return None
    if not windows_by_name.bad:
        return 0.0
    numerator, denominator = _budget(objective.target)
    return budget.round_ratio(
        float(windows_by_name.bad * denominator / (windows_by_name.total * numerator))
    )


def is_above(windows_by_name: WindowCounts, objective: Objective, threshold: Decimal) -> bool:
    """Return whether a known window burns strictly faster than a threshold, exactly."""
    numerator, denominator = _limit(threshold, objective.target)
    return bool(windows_by_name.bad * denominator > windows_by_name.total * numerator)


def _rule_state(
    rule: BurnRateRule,
    objective: Objective,
    windows_by_name: Mapping[str, WindowCounts],
    rates: Mapping[str, float | None],
) -> str:
    """Return the state of a rule; one known window not above the threshold makes it `ok`."""
    is_known = True
    for name in (rule.long, rule.short):
        if rates[name] is None:
            is_known = False
        elif not is_above(windows_by_name[name], objective, rule.burn_rate):
            return OK
    return FIRING if is_known else UNKNOWN


def _overall_state(rules: tuple[RuleEvaluation, ...], rates: Iterable[float | None]) -> str:
    """Return the state of an SLO: firing before unknown before ok.

    Without rules it is known if any of its windows is.
    """
    states = {one.state for one in rules}
    if not states:
        return OK if any(rate is not None for rate in rates) else UNKNOWN
    return next(state for state in (FIRING, UNKNOWN, OK) if state in states)


@lru_cache(maxsize=4096)
def _limit(threshold: Decimal, target: Decimal) -> tuple[int, int]:
    """Return the share of events that may be bad at a burn-rate threshold, as an exact fraction."""
    return (Fraction(threshold) * (1 - Fraction(target))).as_integer_ratio()


@lru_cache(maxsize=4096)
def _budget(target: Decimal) -> tuple[int, int]:
    """Return the share of events that may be bad, as an exact fraction."""
    return (1 - Fraction(target)).as_integer_ratio()
