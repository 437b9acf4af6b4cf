"""The rate limiter of replays."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.dead_letters.bulk.rate_limiter import MAX_CATCH_UP_SECONDS, ReplayRateLimiter

AT_ONCE = 50


@given(
    st.floats(0.1, 1000),
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, AT_ONCE)), min_size=1, max_size=60),
)
def test_never_more_leave_than_the_rate_allows_and_a_second_made_up_for(rate, steps):
    limiter, at, left, looks = ReplayRateLimiter(rate, due=0.0), 0.0, 0, []

    for pause, count in steps:
        at += pause
        at += limiter.seconds_to_wait(at, AT_ONCE)
        looks.append((at, left))
        limiter.record(count, at)
        left += count

    for (began, before), (ended, after) in combinations(looks, 2):
        assert after - before <= rate * (ended - began + MAX_CATCH_UP_SECONDS) * 1.000001


def test_each_puts_the_next_off_by_its_share():
    limiter = ReplayRateLimiter(10.0, due=100.0)

    limiter.record(5, 100.0)

    assert limiter.seconds_to_wait(100.0, AT_ONCE) == pytest.approx(0.5)
    assert limiter.seconds_to_wait(101.0, AT_ONCE) == 0


def test_a_clock_that_was_set_back_is_not_waited_for():
    limiter = ReplayRateLimiter(10.0, due=100_000.0)

    assert limiter.seconds_to_wait(100.0, AT_ONCE) == 0


def test_a_moment_is_made_up_for_and_a_long_pause_is_not():
    moment, pause = ReplayRateLimiter(10.0, due=100.0), ReplayRateLimiter(10.0, due=100.0)

    moment.seconds_to_wait(103.0, AT_ONCE)
    moment.record(25, 103.0)
    pause.seconds_to_wait(160.0, AT_ONCE)
    pause.record(25, 160.0)

    assert moment.seconds_to_wait(103.0, AT_ONCE) == 0
    assert pause.seconds_to_wait(160.0, AT_ONCE) == pytest.approx(2.5)


@pytest.mark.parametrize(("rate", "together"), [(0.1, 1), (4, 1), (50, 12), (200, 50), (1000, 50)])
def test_what_leaves_together_is_a_quarter_of_a_second(rate, together):
    assert ReplayRateLimiter(rate, 0).batch_size(AT_ONCE) == together
