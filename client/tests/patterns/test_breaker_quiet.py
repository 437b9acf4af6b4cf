"""Breakers of dependencies that are called seldom, or whose probes do not end."""

from contextvars import Context

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import StateTransition
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.patterns.clocks import Clock

INTERVALS = [1, 2, 5, 7.4, 7.6, 10, 15, 20, 31, 45, 60, 90, 120]
"""Seconds between two calls. Above 7.5 s fewer than five calls fall into 30 s."""
AN_HOUR = 3600


def opened(clock: Clock, rng: float = 0.5, **parameters: object) -> Breaker:
    """Return a breaker that has just opened, with the defaults otherwise."""
    breaker = Breaker(
        "d",
        BreakerParameters(**parameters),  # type: ignore[arg-type]
        clock=clock,
        rng=lambda: rng,
    )
    for _ in range(breaker.parameters.needed_calls):
        breaker.fail(breaker.admit(), None)
    assert breaker.state == "open"
    return breaker


def call(breaker: Breaker, clock: Clock, seconds: float = 0.05, *, fails: bool = False) -> str:
    """Make one call that takes so long; return "rejected", or the state after it."""
    try:
        permit = breaker.admit()
    except CircuitOpen:
        return "rejected"
    clock.goes(seconds)
    breaker.settle(permit, ConnectionError("down") if fails else None, seconds)
    return breaker.state


@pytest.mark.parametrize("rng", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("concurrent", [1, 2, 5])
@pytest.mark.parametrize("max_seconds", [0, 30])
@pytest.mark.parametrize("interval", INTERVALS)
def test_healthy_callee_closes_the_breaker_within_ten_calls_however_seldom_it_is_called(
    interval: float, max_seconds: float, concurrent: int, rng: float
) -> None:
    clock = Clock()
    breaker = opened(clock, rng, half_open_max_seconds=max_seconds, half_open_concurrent=concurrent)
    open_until = breaker.look().open_until
    assert open_until is not None
    ends = clock.now + AN_HOUR

    outcomes = []
    while clock.now < ends:
        clock.goes(interval)
        if clock.now >= open_until:
            outcomes.append(call(breaker, clock))

    assert "closed" in outcomes[:10]
    assert outcomes.count("rejected") <= 1
    assert set(outcomes[10:]) == {"closed"}


@pytest.mark.parametrize("interval", INTERVALS)
def test_callee_that_still_fails_opens_the_breaker_again_when_all_probes_are_done(
    interval: float,
) -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.goes(40)

    outcomes = []
    for fails in (False, True, False, True, True):
        clock.goes(interval)
        outcomes.append(call(breaker, clock, fails=fails))

    assert outcomes == ["half_open"] * 4 + ["open"]


def test_lack_of_calls_leaves_a_half_open_breaker_half_open_even_with_failed_probes() -> None:
    clock = Clock()
    breaker = opened(clock, half_open_max_seconds=5)
    clock.goes(40)
    call(breaker, clock, fails=True)

    clock.goes(AN_HOUR)

    assert breaker.state == "half_open"
    assert call(breaker, clock) == "half_open"


def test_only_the_oldest_probe_in_flight_is_measured() -> None:
    clock = Clock()
    breaker = opened(clock, half_open_concurrent=2, half_open_max_seconds=10)
    transitions: list[StateTransition] = []
    breaker.watch(transitions.append)
    clock.goes(40)
    first = breaker.admit()
    clock.goes(6)
    second = breaker.admit()
    clock.goes(3)
    breaker.succeed(first)
    clock.goes(6)
    assert breaker.state == "half_open"

    clock.goes(1)

    assert breaker.state == "open"
    assert transitions[-1].at == clock.now
    assert transitions[-1].cause == "half_open_max_seconds 10.0 over"
    breaker.release(second)


def test_probe_that_took_too_long_opens_the_breaker_again_without_a_longer_pause() -> None:
    clock = Clock()
    breaker = opened(clock, half_open_max_seconds=10, open_jitter=0)
    clock.goes(30)

    outcome = call(breaker, clock, seconds=12)

    assert outcome == "open"
    assert breaker.look().open_until == clock.now - 2 + 30


def test_probe_that_hangs_rejects_all_calls_by_default_until_the_breaker_is_reset() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.goes(40)
    hung = breaker.admit()
    clock.goes(AN_HOUR)
    assert call(breaker, clock) == "rejected"

    breaker.reset()

    assert call(breaker, clock) == "closed"
    breaker.fail(hung, TimeoutError())
    assert breaker.look().calls == 1


def test_abandoned_probe_makes_room_for_another() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.goes(40)
    breaker.admit()  # Nobody can settle this one any more.

    outcomes = [call(breaker, clock) for _ in range(5)]

    assert outcomes == ["half_open"] * 4 + ["closed"]


def test_probe_that_began_and_ended_in_different_contexts_makes_room_for_another() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.goes(40)
    entered_in = Context()
    entered_in.run(breaker.__enter__)
    assert call(breaker, clock) == "rejected"

    Context().run(breaker.__exit__, None, None, None)

    assert [call(breaker, clock) for _ in range(5)] == ["half_open"] * 4 + ["closed"]


def test_last_probe_gone_after_enough_others_are_done_lets_them_decide() -> None:
    clock = Clock()
    breaker = opened(clock, half_open_calls=3, half_open_concurrent=3)
    clock.goes(40)
    call(breaker, clock)
    call(breaker, clock)
    gone = breaker.admit()
    breaker.configure(BreakerParameters(half_open_calls=2))
    assert breaker.state == "half_open"

    del gone

    assert call(breaker, clock) == "closed"
