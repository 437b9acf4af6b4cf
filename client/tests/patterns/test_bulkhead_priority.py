"""A wrong priority never fails a call, whether the bulkhead is full or not."""

import threading
import time

import pytest

from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.parameters import BulkheadParameters
from switchgear.policies.policy import Policy

ONE = BulkheadParameters(limit=1, queue=5, queue_seconds=20.0)


def served(bulkhead, calls):
    """Return the order in which calls that arrived in this one, `{name: call}`, are served.

    The only permit is taken meanwhile.
    """
    order = []

    def one(name, call):
        call(lambda: order.append(name))

    permits = bulkhead.acquire()
    threads = []
    for number, (name, call) in enumerate(calls.items(), 1):
        threads.append(threading.Thread(target=one, args=(name, call), daemon=True))
        threads[-1].start()
        end = time.monotonic() + 20
        while bulkhead.look().queued < number and time.monotonic() < end:
            time.sleep(0.002)
    permits.release()
    for thread in threads:
        thread.join(20)
    return order


@pytest.mark.parametrize("wrong", [None, "high", 1.5, object()])
def test_found_priority_that_is_no_number_is_nought(wrong, caplog):
    bulkhead = Bulkhead("llm", ONE, priority=lambda urgent: urgent)

    @bulkhead
    def ask(do, urgent):
        do()

    calls = {
        name: lambda do, urgent=urgent: ask(do, urgent)
        for name, urgent in (("low", -1), ("wrong", wrong), ("nought", 0), ("high", 1))
    }
    assert served(bulkhead, calls) == ["high", "wrong", "nought", "low"]
    assert served(bulkhead, {"again": calls["wrong"]}) == ["again"]

    complaints = [text for text in caplog.messages if "priority" in text]
    assert len(complaints) == (wrong is not None)
    assert all("llm" in text and "high" not in text for text in complaints)


def test_wrong_priority_of_a_block_is_logged_once():
    bulkhead = Bulkhead("llm", ONE)

    def make_call(priority):
        def call(do):
            with bulkhead.of(priority=priority):
                do()

        return call

    calls = {
        "low": make_call(-1),
        "none": make_call(None),
        "wrong": make_call("high"),
        "yes": make_call(True),
    }
    assert served(bulkhead, calls) == ["yes", "none", "wrong", "low"]


def test_so_is_one_that_is_found_for_a_policy():
    policy = Policy("a", bulkhead=ONE, key=lambda do: None, priority=lambda urgent: urgent)

    @policy
    def ask(do, urgent):
        do()

    calls = {"low": lambda do: ask(do, -1), "none": lambda do: ask(do, None)}
    assert served(policy.bulkhead, calls) == ["none", "low"]


def test_fixed_priority_that_is_no_number_is_refused_at_once():
    with pytest.raises(TypeError, match="priority"):
        Bulkhead("llm", ONE, priority="high")
    with pytest.raises(TypeError, match="priority"):
        Policy("a", priority=0.5)

    assert Bulkhead("llm", ONE, priority=None)(lambda: 7)() == 7
    assert Policy("a", bulkhead=ONE, priority=None)(lambda: 7)() == 7
