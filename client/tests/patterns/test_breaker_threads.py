"""A breaker shared by many threads."""

import contextlib
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import StateTransition
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.patterns.clocks import Clock

THREADS = 100
PATIENCE = 30.0


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Switch threads a hundred times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


def all_at_once(threads: int, work: Callable[[int], object]) -> None:
    """Run `work(number)` in each thread; raise the error of any."""
    gate = threading.Barrier(threads)

    def run(number: int) -> None:
        gate.wait(PATIENCE)
        work(number)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run, number) for number in range(threads)]:
            done.result(PATIENCE)


@pytest.mark.parametrize("window_type", ["count", "time"])
def test_100_threads_calling_counts_every_outcome(window_type: str) -> None:
    clock = Clock()
    parameters = BreakerParameters(window_type=window_type, window_size=86_400, failure_rate=1.0)  # type: ignore[arg-type]
    breaker = Breaker("d", parameters, clock=clock)

    @breaker
    def call(fails: bool) -> None:
        if fails:
            raise ValueError("no")

    def work(number: int) -> None:
        for turn in range(100):
            with contextlib.suppress(ValueError):
                call(turn % 10 == number % 10)

    all_at_once(THREADS, work)
    seen, counted = breaker.look(), breaker.counters.counted()
    assert seen.calls == THREADS * 100
    assert seen.failure_rate == 0.1
    assert (counted["success"], counted["failure"]) == (9_000, 1_000)


def test_ten_threads_through_one_breaker_take_the_time_of_one_call() -> None:
    inside = threading.Barrier(10)
    breaker = Breaker("d")

    @breaker
    def call() -> None:
        inside.wait(PATIENCE)  # Nobody gets out before all ten are in.
        time.sleep(0.1)

    began = time.monotonic()
    all_at_once(10, lambda number: call())

    assert time.monotonic() - began < 0.9
    assert breaker.counters.counted()["success"] == 10


def test_100_threads_at_a_breaker_due_to_probe_never_exceed_its_limits() -> None:
    clock = Clock()
    parameters = BreakerParameters(
        failure_count=1, open_seconds=1, open_jitter=0, half_open_calls=7, half_open_concurrent=3,
        half_open_max_seconds=1000,
    )  # fmt: skip
    breaker = Breaker("d", parameters, clock=clock)
    breaker.fail(breaker.admit(), None)
    clock.goes(1)
    lock = threading.Lock()
    at_once = most = begun = 0

    @breaker
    def call() -> None:
        nonlocal at_once, most, begun
        with lock:
            at_once += 1
            begun += 1
            most = max(most, at_once)
        time.sleep(random.uniform(0, 0.003))
        with lock:
            at_once -= 1
        raise ValueError("no")  # So it never closes, and lets all in.

    def work(number: int) -> None:
        for _ in range(20):
            with contextlib.suppress(CircuitOpen, ValueError):
                call()

    all_at_once(THREADS, work)
    assert begun == 7
    assert most <= 3
    assert breaker.state == "open"


def test_a_flapping_dependency_under_threads_keeps_to_the_states() -> None:
    """Calls, looks, overrides and new parameters at once, by the machine's clock."""
    parameters = BreakerParameters(
        window_size=10, minimum_calls=5, open_seconds=0.005, half_open_calls=2,
        half_open_max_seconds=0.05,
    )  # fmt: skip
    breaker = Breaker("d", parameters)
    transitions: list[StateTransition] = []
    breaker.watch(transitions.append)

    @breaker
    def call(fails: bool) -> None:
        if fails:
            raise ValueError("no")

    def work(number: int) -> None:
        chance = random.Random(number)
        for turn in range(150):
            try:
                call(chance.random() < 0.5)
            except (CircuitOpen, ValueError):
                time.sleep(0.0005)
            if number == 0 and turn % 30 == 0:
                breaker.force("metrics_only")
                breaker.unforce()
            elif number == 1 and turn % 20 == 0:
                breaker.configure(parameters)

    all_at_once(20, work)
    transitions.sort(key=lambda each: each.n)
    counted = breaker.counters.counted()
    assert [each.n for each in transitions] == list(range(1, len(transitions) + 1))
    assert all(one.after == other.before for one, other in itertools.pairwise(transitions))
    assert any(each.after == "open" for each in transitions)
    assert counted["success"] + counted["failure"] + counted["rejected"] == 20 * 150


def test_a_watcher_that_asks_another_thread_to_call_does_not_deadlock() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=1))
    seen: list[str] = []

    def watcher(_: StateTransition) -> None:
        other = threading.Thread(target=lambda: seen.append(breaker.look().state))
        other.start()
        other.join(PATIENCE)

    breaker.watch(watcher)
    breaker.fail(breaker.admit(), None)

    assert seen == ["open"]
