"""Meanings of objectives and rules, compared with an outage evaluated minute by minute."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slo.arithmetic.evaluate import FIRING, evaluate
from slo.arithmetic.objective import (
    PAGE,
    BurnRateRule,
    Objective,
    describe_objective,
    describe_rule,
)
from slo.arithmetic.windows import CounterValues

BEGAN = 100_000
TRAFFIC = 10_000


def outage(minute: int) -> CounterValues:
    """All events are good up to the end of the minute BEGAN, and bad after it."""
    return CounterValues(float(TRAFFIC * min(minute, BEGAN)), float(TRAFFIC * minute), minute)


def first_firing(objective: Objective) -> int:
    """Return the minutes into the outage until the rule fires, by evaluating each."""
    return next(
        after
        for after in range(1, 10_000)
        if evaluate(objective, BEGAN + after, outage, 0).rules[0].state == FIRING
    )


def test_three_nines_of_a_month_are_43_minutes():
    meaning = describe_objective(Decimal("0.999"), 30)

    assert meaning.outage == timedelta(minutes=43, seconds=12)
    assert meaning.one_in == 1000


@given(
    st.sampled_from(["0.9", "0.95", "0.99", "0.995", "0.999", "0.9999"]),
    st.sampled_from(["1", "3", "6", "9.9", "14", "14.4"]),
    st.sampled_from([("1h", "5m"), ("6h", "30m"), ("3d", "6h"), ("30m", "2m"), ("10m", "1m")]),
)
def test_rule_fires_just_when_it_is_said_to(target, burn_rate, windows):
    share, limit = Decimal(target), Decimal(burn_rate)
    rule = BurnRateRule(*windows, limit, PAGE)
    if limit * (1 - share) >= 1:
        return  # It never could, and is refused.

    meaning = describe_rule(rule, share, 30)

    assert meaning.after == first_firing(Objective(share, 30, (rule,)))


def test_rule_says_what_goes_unnoticed():
    meaning = describe_rule(BurnRateRule("1h", "5m", Decimal("14.4"), PAGE), Decimal("0.999"), 30)

    assert meaning.spent == Decimal("0.02")
    assert (meaning.after, meaning.resets) == (1, 5)


def test_window_that_is_none_is_not_told_of():
    with pytest.raises(ValueError, match="whole number and a unit"):
        describe_rule(BurnRateRule("soon", "5m", Decimal(14), PAGE), Decimal("0.999"), 30)
