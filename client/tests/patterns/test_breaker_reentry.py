"""Reentrance: signal handlers and finalizers run in the middle of any operation."""

import gc
import signal
import threading
from collections.abc import Iterator

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters
from tests.patterns.clocks import Clock


def test_a_signal_handler_may_use_a_breaker_that_it_interrupts() -> None:
    """The signal arrives while the breaker reads the clock with its lock held."""
    calls: list[int] = []

    def clock() -> float:
        if signals:
            signals.pop()
            signal.raise_signal(signal.SIGUSR1)
        return 1000.0

    def handler(*_: object) -> None:
        breaker.fail(breaker.admit(), None)
        calls.append(breaker.look().calls)

    signals: list[None] = []
    parameters = BreakerParameters(window_type="time", failure_rate=1)
    breaker = Breaker("d", parameters, clock=clock)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        signals.append(None)
        breaker.fail(breaker.admit(), None)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert calls == [1]
    assert breaker.look().calls == 2


def test_a_generator_that_is_collected_gives_its_probe_back() -> None:
    clock = Clock()
    parameters = BreakerParameters(failure_count=1, open_seconds=1, half_open_calls=1)
    breaker = Breaker("d", parameters, clock=clock)
    breaker.fail(breaker.admit(), None)
    clock.goes(2)

    @breaker
    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    def begin() -> None:
        kept: list[object] = [numbers()]
        next(kept[0])  # type: ignore[call-overload]
        kept.append(kept)  # Only the collector ends it.

    gc.disable()
    try:
        begin()
        assert breaker.state == "half_open"
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join(10)
    finally:
        gc.enable()
    breaker.succeed(breaker.admit())

    assert breaker.state == "closed"


@pytest.mark.parametrize("window_type", ["count", "time"])
def test_signals_all_the_time_lose_no_outcome(window_type: str) -> None:
    parameters = BreakerParameters(window_type=window_type, window_size=86_400, failure_rate=1)  # type: ignore[arg-type]
    breaker = Breaker("d", parameters, clock=lambda: 1000.0)
    call = breaker(lambda: None)
    inside = 0

    def handler(*_: object) -> None:
        nonlocal inside
        inside += 1
        call()
        breaker.fail(breaker.admit(), None)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    turns = 0
    try:
        while inside < 100 and turns < 200_000:
            turns += 1
            breaker.fail(breaker.admit(), None)
            call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    counted = breaker.counters.counted()
    assert counted["success"] == counted["failure"] == turns + inside
    most = 86_400 if window_type == "count" else 1_000_000
    assert breaker.look().calls == min(2 * (turns + inside), most)
