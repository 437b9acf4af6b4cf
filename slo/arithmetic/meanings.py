"""Figures that explain an objective and its rules, such as how long an outage may last. Pure."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal

from .minutes import MINUTES_A_DAY, window_minutes
from .objective import BurnRateRule


@dataclass(frozen=True)
class RuleMeaning:
    """Figures that explain a burn-rate rule, assuming even traffic.

    The rule fires `after` minutes of a complete outage, and stops firing `resets` minutes after it.
    A burn rate just at the threshold spends the share `spent` of the budget in the long window.
    """

    rule: BurnRateRule
    after: int
    spent: Decimal
    resets: int


@dataclass(frozen=True)
class ObjectiveMeaning:
    """Figures that explain an objective, assuming even traffic.

    `budget` is the share of events that may be bad: one event in `one_in`. A complete outage of the
    length `outage` spends the whole budget.
    """

    budget: Decimal
    outage: timedelta
    one_in: Decimal


def describe_objective(target: Decimal, window_days: int) -> ObjectiveMeaning:
    budget = 1 - target
    outage = timedelta(minutes=float(budget * window_days * MINUTES_A_DAY))
    return ObjectiveMeaning(budget, outage, 1 / budget)


def describe_rule(rule: BurnRateRule, target: Decimal, window_days: int) -> RuleMeaning:
    """Return the figures of a rule. Raise :class:`ValueError` for an invalid window."""
    # In a complete outage the bad share of a window grows by 1/length a minute, and the rule fires
    # once the longer window is strictly above the threshold.
    long, short = window_minutes(rule.long), window_minutes(rule.short)
    allowed = rule.burn_rate * (1 - target)
    after = int((max(long, short) * allowed).to_integral_value(ROUND_FLOOR)) + 1
    return RuleMeaning(rule, after, rule.burn_rate * long / (window_days * MINUTES_A_DAY), short)
