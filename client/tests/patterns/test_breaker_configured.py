"""New parameters for a breaker in use."""

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.patterns.clocks import Clock


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.fail(breaker.admit(), None)


def test_a_lower_threshold_counts_from_the_next_outcome_and_keeps_the_window() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=10))
    fail(breaker, 5)
    breaker.configure(BreakerParameters(failure_count=3))

    assert breaker.state == "closed"
    breaker(lambda: None)()
    assert breaker.state == "open"


def test_new_conditions_are_looked_at_after_a_success_too() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=10))
    call = breaker(lambda: None)
    fail(breaker, 3)
    call()
    call()
    breaker.configure(BreakerParameters(minimum_calls=5))

    assert breaker.state == "closed"
    call()
    assert breaker.state == "open"


def test_an_outcome_from_before_does_not_bring_new_thresholds_into_force() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=10))
    early = breaker.admit()
    breaker.reset()
    fail(breaker, 5)
    breaker.configure(BreakerParameters(failure_count=3))
    breaker.fail(early, None)

    assert breaker.state == "closed"


def test_another_window_begins_empty_without_calls_on_their_way() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=3))
    fail(breaker, 2)
    early = breaker.admit()
    breaker.configure(BreakerParameters(failure_count=3, window_type="time"))
    breaker.fail(early, None)

    assert breaker.look().calls == 0
    fail(breaker, 2)
    assert breaker.state == "closed"
    fail(breaker)
    assert breaker.state == "open"


def test_an_open_breaker_stays_open_as_long_as_it_was_to() -> None:
    clock = Clock()
    parameters = BreakerParameters(failure_count=1, open_seconds=10, open_jitter=0)
    breaker = Breaker("d", parameters, clock=clock)
    fail(breaker)
    breaker.configure(BreakerParameters(failure_count=1, open_seconds=1, window_type="time"))
    clock.goes(9)

    with pytest.raises(CircuitOpen):
        breaker.admit()
    clock.goes(1)
    breaker.admit()


def test_fewer_probes_than_are_done_decide_at_once() -> None:
    clock = Clock()
    parameters = BreakerParameters(failure_count=1, open_seconds=1, half_open_calls=5)
    breaker = Breaker("d", parameters, clock=clock)
    fail(breaker)
    clock.goes(2)
    breaker.succeed(breaker.admit())
    breaker.succeed(breaker.admit())
    breaker.configure(BreakerParameters(failure_count=1, half_open_calls=2))

    assert breaker.state == "closed"


def test_fewer_probes_than_are_begun_wait_for_those_on_their_way() -> None:
    clock = Clock()
    parameters = BreakerParameters(
        failure_count=1, open_seconds=1, half_open_calls=5, half_open_concurrent=2
    )
    breaker = Breaker("d", parameters, clock=clock)
    fail(breaker)
    clock.goes(2)
    on_its_way = breaker.admit()
    breaker.succeed(breaker.admit())
    breaker.configure(BreakerParameters(failure_count=1, half_open_calls=1))

    assert breaker.state == "half_open"
    breaker.fail(on_its_way, None)
    assert breaker.state == "open"


def test_slow_calls_count_once_configured() -> None:
    clock = Clock()
    breaker = Breaker("d", clock=clock)

    @breaker
    def call() -> None:
        clock.goes(5)

    call()
    breaker.configure(BreakerParameters(slow_call_seconds=1))
    call()

    assert breaker.counters.counted()["slow"] == 1
    assert breaker.parameters.slow_call_seconds == 1


def test_a_window_of_time_forgets_by_whole_seconds() -> None:
    clock = Clock(100.5)
    parameters = BreakerParameters(window_type="time", window_size=10, minimum_calls=4)
    breaker = Breaker("d", parameters, clock=clock)
    call = breaker(lambda: None)
    fail(breaker)
    clock.goes(0.25)
    call()
    clock.goes(5.25)
    call()

    assert breaker.look().calls == 3
    clock.goes(3.75)  # 109.75: the second 100 is the tenth.
    assert breaker.look().calls == 3
    clock.goes(0.25)
    assert breaker.look().calls == 1
    clock.goes(10)
    assert breaker.look().calls == 0


def test_failures_left_alone_in_a_window_of_time_open_it_at_the_next_success() -> None:
    clock = Clock()
    parameters = BreakerParameters(window_type="time", window_size=10, minimum_calls=2)
    breaker = Breaker("d", parameters, clock=clock)
    call = breaker(lambda: None)
    for _ in range(10):
        call()
    clock.goes(5)
    fail(breaker, 3)
    assert breaker.state == "closed"
    clock.goes(5)
    call()

    assert breaker.state == "open"
