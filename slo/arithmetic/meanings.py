"""What an objective and its rules mean, in figures that people can picture. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal

from .minutes import MINUTES_A_DAY, window_minutes
from .objective import BurnRateRule


@dataclass(frozen=True)
class RuleMeaning:
    """Of a rule: it fires `after` so many minutes of a complete outage, if traffic is even; what
    burns just as fast as it allows has `spent` that share (of 1) of the budget when the long window
    is over; and `resets` minutes after the end of trouble the short one has forgotten it."""

    rule: BurnRateRule
    after: int
    spent: Decimal
    resets: int


@dataclass(frozen=True)
class ObjectiveMeaning:
    """Of an objective: the `budget` as a share of events, as `outage` (a complete one that would
    use it up, if traffic is even), and as one event of `one_in`."""

    budget: Decimal
    outage: timedelta
    one_in: Decimal
    rules: tuple[RuleMeaning, ...] = ()

    @property
    def fastest(self) -> Decimal:
        """The burn rate of a complete outage."""
        return self.one_in


def describe_objective(
    target: Decimal, window_days: int, rules: Sequence[BurnRateRule] = ()
) -> ObjectiveMeaning:
    """`target` is a share, above 0 and below 1."""
    budget = 1 - target
    outage = timedelta(minutes=float(budget * window_days * MINUTES_A_DAY))
    meanings = tuple(describe_rule(rule, target, window_days) for rule in rules)
    return ObjectiveMeaning(budget, outage, 1 / budget, meanings)


def describe_rule(rule: BurnRateRule, target: Decimal, window_days: int) -> RuleMeaning:
    """In an outage the share of bad events of a window grows by 1/length a minute; the rule fires
    once both are strictly above what it allows, which the long one reaches last.

    Raises :class:`ValueError` for a window that is none.
    """
    long, short = window_minutes(rule.long), window_minutes(rule.short)
    allowed = rule.burn_rate * (1 - target)
    after = int((max(long, short) * allowed).to_integral_value(ROUND_FLOOR)) + 1
    return RuleMeaning(rule, after, rule.burn_rate * long / (window_days * MINUTES_A_DAY), short)
