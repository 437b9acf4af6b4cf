"""Practical figures that explain an objective and its rules to people. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal

from .minutes import MINUTES_A_DAY, window_minutes
from .objective import BurnRateRule


@dataclass(frozen=True)
class RuleMeaning:
    """Practical figures of a rule, assuming even traffic.

    The rule fires `after` minutes of a complete outage. A burn just at its threshold has `spent`
    that share of the budget when the long window is over. The short window is clean again `resets`
    minutes after an incident.
    """

    rule: BurnRateRule
    after: int
    spent: Decimal
    resets: int


@dataclass(frozen=True)
class ObjectiveMeaning:
    """Practical figures of an objective, assuming even traffic.

    The `budget` as a share of events, as one event of `one_in`, and as the length of a complete
    `outage` that would spend it.
    """

    budget: Decimal
    outage: timedelta
    one_in: Decimal
    rules: tuple[RuleMeaning, ...] = ()

    @property
    def fastest(self) -> Decimal:
        return self.one_in


def describe_objective(
    target: Decimal, window_days: int, rules: Sequence[BurnRateRule] = ()
) -> ObjectiveMeaning:
    budget = 1 - target
    outage = timedelta(minutes=float(budget * window_days * MINUTES_A_DAY))
    meanings = tuple(describe_rule(rule, target, window_days) for rule in rules)
    return ObjectiveMeaning(budget, outage, 1 / budget, meanings)


def describe_rule(rule: BurnRateRule, target: Decimal, window_days: int) -> RuleMeaning:
    """Return the practical figures of a rule.

    In a complete outage the bad share of a window grows by 1/length a minute; the rule fires
    once both windows are strictly above the threshold, which the long one reaches last. Raise
    :class:`ValueError` for an invalid window.
    """
    long, short = window_minutes(rule.long), window_minutes(rule.short)
    allowed = rule.burn_rate * (1 - target)
    after = int((max(long, short) * allowed).to_integral_value(ROUND_FLOOR)) + 1
    return RuleMeaning(rule, after, rule.burn_rate * long / (window_days * MINUTES_A_DAY), short)
