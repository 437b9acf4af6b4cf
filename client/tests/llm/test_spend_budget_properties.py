"""Reserved and spent tokens stay within the limit in any sequence, and none leak."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.llm import SpendBudget, SpendExceeded
from switchgear.llm.spend_budget import SLOTS
from switchgear.patterns.parameters import SpendParameters
from tests.hypothesis_examples import examples
from tests.patterns.clocks import Clock

KEYS = st.sampled_from(["kim", "lee", None])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 120), KEYS),
        st.tuples(st.just("spend"), st.integers(1, 40), KEYS),
        st.tuples(st.just("add"), st.integers(0, 10), st.integers(0, 120)),
        st.tuples(st.just("settle"), st.integers(0, 10), st.floats(0, 1)),
        st.tuples(st.just("refund"), st.integers(0, 10), st.none()),
        st.tuples(st.just("fail"), st.integers(0, 10), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([0.01, 0.2, 0.5, 0.9, 1.1]), st.none()),
    ),
    max_size=60,
)


class Oracle:
    """Every token ever spent with its time, and every open reservation."""

    def __init__(self, clock):
        self.clock = clock
        self.spent = []
        self.open = []

    def used(self, key, seconds):
        """Return the tokens of `key`, or of all for None, in the window of the last `seconds`."""
        since = self.clock() - seconds
        spent = sum(n for at, n, whose in self.spent if at > since and key in (None, whose))
        reserved = sum(one.reserved for one, whose in self.open if key in (None, whose))
        return spent + reserved


@examples(300)
@given(STEPS, st.integers(50, 300), st.integers(20, 150), st.floats(1, 100))
def test_spend_stays_within_limits_and_fitting_calls_pass(steps, tokens, per_key, window):
    clock = Clock()
    oracle = Oracle(clock)
    spending = SpendBudget(
        "a",
        SpendParameters(tokens=tokens, per_key_tokens=per_key, window_seconds=window),
        clock=clock,
    )
    limits = {None: tokens, "kim": per_key, "lee": per_key}
    coarse = window * (1 + 1 / SLOTS) + 1e-6

    for step, one, other in steps:
        if step == "wait":
            clock.goes(one * window)
        elif step in ("reserve", "spend"):
            whose = {None, other}
            must_fit = all(oracle.used(key, coarse) + one <= limits[key] for key in whose)
            may_fit = all(oracle.used(key, window) + one <= limits[key] for key in whose)
            try:
                oracle.open.append((spending.reserve(one, key=other), other))
            except SpendExceeded:
                assert not must_fit
            else:
                assert may_fit
                if step == "spend":
                    oracle.open.pop()[0].settle()
                    oracle.spent.append((clock(), one, other))
        elif oracle.open:
            reservation, whose = oracle.open[one % len(oracle.open)]
            if step == "add":
                over = max(reservation.counted + other - reservation.reserved, 0)
                fits = all(oracle.used(k, coarse) + over <= limits[k] for k in {None, whose})
                try:
                    reservation.add(other)
                except SpendExceeded:
                    assert over
                    assert not fits
                continue
            oracle.open.remove((reservation, whose))
            spent = reservation.counted
            if step == "settle":
                spent = int(reservation.reserved * other)
                reservation.settle(spent)
            elif step == "refund":
                spent = 0
                reservation.refund()
            else:
                with pytest.raises(KeyError), reservation:
                    raise KeyError
            oracle.spent.append((clock(), spent, whose))
        assert spending.look().reserved == oracle.used(None, 0)
        assert spending.look().used >= oracle.used(None, window)

    while oracle.open:
        oracle.open.pop()[0].refund()
    clock.goes(coarse)
    for key in limits:
        assert (spending.look(key).spent, spending.look(key).reserved) == (0, 0)
    assert spending.reserve(min(tokens, per_key), key="kim")
