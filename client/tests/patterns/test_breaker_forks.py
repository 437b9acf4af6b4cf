"""A breaker in the child of a fork."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import StateTransition
from switchgear.patterns.parameters import BreakerParameters

PATIENCE_SECONDS = 20

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
]


def in_child(work: Callable[[], object]) -> object:
    """Return the result of `work` in a child, as JSON; None if it fails or hangs."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(PATIENCE_SECONDS)
            os.write(write, json.dumps(work()).encode())
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        output = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(output) if output else None


def test_a_child_wakes_no_waiting_calls_of_its_parent() -> None:
    breaker = Breaker("d")
    woken: list[int] = []
    breaker.subscribe(lambda: woken.append(os.getpid()))

    def work() -> object:
        breaker.force("forced_open")
        return woken

    assert in_child(work) == []
    breaker.force("forced_open")
    assert woken == [os.getpid()]


def test_child_starts_closed_with_an_empty_window() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=2))
    transitions: list[StateTransition] = []
    breaker.watch(transitions.append)
    inherited = breaker.admit()
    breaker.fail(breaker.admit(), None)
    breaker.fail(breaker.admit(), None)
    assert breaker.state == "open"

    def work() -> object:
        transitions.clear()
        fresh = breaker.state, breaker.look().calls, breaker.counters.counted()["failure"]
        breaker.fail(inherited, None)
        breaker.fail(breaker.admit(), None)
        assert breaker.state == "closed"
        breaker.fail(breaker.admit(), None)
        return [*fresh, breaker.state, [each.n for each in transitions]]

    assert in_child(work) == ["closed", 0, 0, "open", [1]]
    assert breaker.state == "open"


def test_a_child_stays_forced_as_its_parent_is() -> None:
    breaker = Breaker("d")
    breaker.force("forced_open")

    assert in_child(lambda: [breaker.state, breaker.mode]) == ["open", "forced_open"]


def test_a_child_calls_though_a_thread_of_the_parent_held_the_lock() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow_clock() -> float:
        if threading.current_thread() is holder and not go_on.is_set():
            inside.set()
            go_on.wait(PATIENCE_SECONDS)
        return 1.0

    holder = threading.Thread(target=lambda: breaker.look())
    breaker = Breaker("d", BreakerParameters(window_type="time"), clock=slow_clock)
    holder.start()
    assert inside.wait(PATIENCE_SECONDS)

    def work() -> object:
        breaker.fail(breaker.admit(), None)
        return breaker.look().calls

    try:
        assert in_child(work) == 1
    finally:
        go_on.set()
        holder.join(PATIENCE_SECONDS)
