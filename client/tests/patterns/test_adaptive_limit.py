"""The limit finds the capacity of a callee, decreases on overload, and recovers."""

import heapq
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.patterns.adaptive_limit import AdaptiveLimit, LimitRange
from tests.hypothesis_examples import examples

BASE_SECONDS = 0.1


def limits(initial=20, min_limit=1, max_limit=10_000):
    return LimitRange(initial=initial, min_limit=min_limit, max_limit=max_limit)


class Callee:
    """A callee that serves `capacity` calls at once without delay, and shares itself among more.

    Beyond the capacity each call takes longer in proportion. Callers make as many calls at once as
    the limit allows, `demand` at most.
    """

    def __init__(self, adaptive, demand=10**6, seed=1):
        self.adaptive, self.demand = adaptive, demand
        self.random = random.Random(seed)
        self.now, self.in_flight, self.number = 0.0, 0, 0
        self.ends = []
        self.limits = []

    def run(
        self,
        seconds,
        capacity,
        base=BASE_SECONDS,
        noise=0.3,
        hangs_for=None,
        turns_away=False,
    ):
        until, self.limits = self.now + seconds, []
        while self.now < until:
            while self.in_flight < min(int(self.adaptive.limit), self.demand):
                self._begin(capacity, base, noise, hangs_for, turns_away)
            self.now, _, began, is_overload = heapq.heappop(self.ends)
            took = None if is_overload else self.now - began
            self.adaptive.record(began, self.now, self.in_flight, took, is_overload)
            self.in_flight -= 1
            self.limits.append(self.adaptive.limit)

    @property
    def typical_limit(self):
        """Return the mean of the last half of the limits."""
        half = self.limits[len(self.limits) // 2 :]
        return sum(half) / len(half)

    def _begin(self, capacity, base, noise, hangs_for, turns_away):
        self.in_flight += 1
        self.number += 1
        is_overload = hangs_for is not None or (turns_away and self.in_flight > capacity)
        took = base * max(1.0, self.in_flight / capacity)
        took *= self.random.lognormvariate(0, noise)
        if is_overload:
            took = hangs_for or 0.01
        heapq.heappush(self.ends, (self.now + took, self.number, self.now, is_overload))


# The more calls end within a second, the sooner the limit is found.
@pytest.mark.parametrize("initial", [2, 20, 400])
@pytest.mark.parametrize(("capacity", "seconds"), [(10, 60), (40, 60), (200, 20)])
@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_it_comes_within_a_factor_of_two_of_the_capacity(initial, capacity, seconds, noise):
    callee = Callee(AdaptiveLimit(limits(initial), 0.0))

    callee.run(seconds, capacity, noise=noise)

    assert capacity / 2 <= callee.typical_limit <= capacity * 2


@pytest.mark.parametrize(("capacity", "seconds"), [(10, 60), (40, 60), (200, 20)])
def test_it_comes_near_the_capacity_of_a_callee_that_turns_away(capacity, seconds):
    callee = Callee(AdaptiveLimit(limits(), 0.0))

    callee.run(seconds, capacity, turns_away=True)

    assert capacity / 2 <= callee.typical_limit <= capacity * 2


def test_it_gives_way_to_a_callee_that_hangs_and_comes_back():
    callee = Callee(AdaptiveLimit(limits(min_limit=2), 0.0))
    callee.run(30, 40)

    callee.run(30, 40, hangs_for=1.0)
    during = callee.limits[-1]
    callee.run(60, 40)

    assert during <= 4
    assert 20 <= callee.typical_limit <= 80


def test_it_follows_a_capacity_that_falls_and_comes_back():
    callee = Callee(AdaptiveLimit(limits(), 0.0))
    callee.run(30, 40)

    callee.run(60, 10)
    during = callee.typical_limit
    callee.run(60, 40)

    assert during <= 20
    assert 20 <= callee.typical_limit <= 80


def test_a_callee_that_is_slower_by_itself_is_not_throttled_for_good():
    callee = Callee(AdaptiveLimit(limits(), 0.0))
    callee.run(30, 40)

    callee.run(60, 40, base=BASE_SECONDS * 4)

    assert 20 <= callee.typical_limit <= 80


def test_a_limit_that_is_not_used_stays_as_it_is():
    callee = Callee(AdaptiveLimit(limits(), 0.0), demand=5)

    callee.run(60, 40, noise=0.7)
    callee.run(10, 40, hangs_for=1.0)

    assert set(callee.limits) == {20.0}


def test_one_overload_lowers_it_once():
    adaptive = AdaptiveLimit(limits(30), 0.0)

    seen = [adaptive.record(0.0, 1.0 + n / 100, 30, None, True) for n in range(100)]

    assert seen == [30.0] * 29 + [15.0] * 71


def test_a_few_overloads_among_many_calls_do_not_lower_it():
    adaptive = AdaptiveLimit(limits(10), 0.0)
    for n in range(100):
        adaptive.record(n / 100, n / 100 + 0.1, 10, 0.1, False)
    before = adaptive.limit

    for n in range(100, 300):
        adaptive.record(n / 100, n / 100 + 0.1, 10**6, 0.1, n % 50 == 0)

    assert adaptive.limit >= before


def test_without_durations_overloads_alone_decide():
    adaptive = AdaptiveLimit(limits(10), 0.0)

    grown = [adaptive.record(n, n + 0.5, 100, None, False) for n in range(100)][-1]
    lowered = [adaptive.record(n, n + 0.5, 100, None, True) for n in range(100, 300)][-1]

    assert grown > 10 > lowered


@examples(200)
@given(
    low=st.integers(1, 50),
    above=st.integers(0, 50),
    further=st.integers(0, 500),
    calls=st.lists(
        st.tuples(
            st.floats(0, 10),
            st.floats(0, 10),
            st.integers(0, 1000),
            st.one_of(st.none(), st.floats(0, 1e6)),
            st.booleans(),
        ),
        max_size=300,
    ),
)
def test_it_stays_within_its_bounds(low, above, further, calls):
    given_limits = limits(low + above, low, low + above + further)
    adaptive = AdaptiveLimit(given_limits, 0.0)
    now = 0.0

    for began_before, later, in_flight, seconds, is_overload in calls:
        now += later
        limit = adaptive.record(now - began_before, now, in_flight, seconds, is_overload)
        assert low <= limit <= low + above + further
