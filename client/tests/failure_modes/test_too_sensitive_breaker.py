"""A breaker that opens at two failures keeps a healthy dependency away."""

import random

from switchgear import Breaker, BreakerParameters, CircuitOpen
from switchgear.testing import FakeClock

CALLS = 20_000
USUAL_SHARE = 0.03
"""Of calls that fail on any good day."""


def rejected(breaker: Breaker, clock: FakeClock, share: float) -> int:
    """Return the number of calls that a breaker rejects, at a hundred calls a second."""
    chance = random.Random(13)
    turned_away = 0
    for _ in range(CALLS):
        clock.advance(0.01)
        try:
            permit = breaker.admit()
        except CircuitOpen:
            turned_away += 1
            continue
        if chance.random() < share:
            breaker.fail(permit, ConnectionError("reset by peer"))
        else:
            breaker.succeed(permit)
    return turned_away


def make_breaker(parameters: BreakerParameters, clock: FakeClock) -> Breaker:
    return Breaker("core->oracle", parameters, clock=clock.monotonic, rng=random.Random(14).random)


def test_two_failures_in_a_minute_turn_most_calls_of_a_healthy_dependency_away() -> None:
    clock = FakeClock()
    sensitive = BreakerParameters(failure_count=2, window_type="time")

    assert rejected(make_breaker(sensitive, clock), clock, USUAL_SHARE) > CALLS / 2


def test_a_share_of_the_last_calls_lets_usual_failures_pass() -> None:
    clock = FakeClock()

    assert rejected(make_breaker(BreakerParameters(), clock), clock, USUAL_SHARE) == 0


def test_a_share_of_the_last_calls_still_opens_when_most_fail() -> None:
    clock = FakeClock()

    assert rejected(make_breaker(BreakerParameters(), clock), clock, 0.8) > CALLS * 0.9


def test_a_threshold_can_be_tried_on_live_traffic_without_turning_anybody_away() -> None:
    clock = FakeClock()
    breaker = make_breaker(BreakerParameters(failure_count=2, window_type="time"), clock)
    breaker.force("metrics_only")

    assert rejected(breaker, clock, USUAL_SHARE) == 0
    assert breaker.look().would_open
