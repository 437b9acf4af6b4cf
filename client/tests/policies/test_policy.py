"""A policy alone: all patterns in their order around calls."""

import asyncio
import inspect
import threading
import time

import pytest

from switchgear import (
    Answer,
    BreakerParameters,
    BulkheadFull,
    BulkheadParameters,
    CircuitOpen,
    DeadlineExceeded,
    Fallback,
    Policy,
    RetryParameters,
)
from switchgear.patterns.deadline import left

AT_ONCE = RetryParameters(base_seconds=0)
FIRST = BreakerParameters(failure_count=1)


def failing(*outcomes):
    """A function that gives these outcomes in turn, raising errors; and how often it was called."""
    calls = []

    def call(*args, **kwargs):
        calls.append((args, kwargs))
        outcome = outcomes[min(len(calls), len(outcomes)) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return call, calls


def test_nothing_said_is_a_breaker_and_no_more():
    call, calls = failing(TimeoutError("a"))
    policy = Policy("core->oracle")

    with pytest.raises(TimeoutError):
        policy(call)()

    assert len(calls) == 1
    assert (policy.retry, policy.bulkhead, policy.deadline) == (None, None, None)
    assert policy.counters.counted()["timeout"] == 1


def test_call_is_tried_again_and_each_try_is_seen_by_the_breaker():
    call, calls = failing(TimeoutError("a"), TimeoutError("b"), 7)

    assert Policy("a", retry=AT_ONCE)(call)("x", y=1) == 7
    assert calls == [(("x",), {"y": 1})] * 3


def test_breaker_that_opens_between_tries_ends_them():
    call, calls = failing(TimeoutError("a"))
    policy = Policy("a", retry=AT_ONCE, breaker=FIRST)

    with pytest.raises(CircuitOpen):
        policy(call)()

    assert len(calls) == 1
    assert policy.counters.counted()["retry"] == 1


def test_fallback_answers_what_all_tries_and_the_open_breaker_leave():
    call, calls = failing(TimeoutError("a"))
    policy = Policy("a", retry=AT_ONCE, breaker=FIRST, fallback=lambda question: f"no {question}")
    guarded = policy(call)

    assert [guarded("x"), guarded(question="y")] == ["no x", "no y"]
    assert len(calls) == 1
    assert policy.counters.counted()["fallback"] == 2


def test_refusal_by_the_bulkhead_is_neither_a_failure_nor_tried_again():
    policy = Policy("a", retry=AT_ONCE, bulkhead=BulkheadParameters(limit=1), breaker=FIRST)
    inner = policy(lambda: 1)
    outer = policy(lambda: inner())

    with pytest.raises(BulkheadFull):
        outer()

    assert policy.breaker.state == "closed"
    assert policy.counters.counted()["retry"] == 0


def test_place_is_of_the_key_that_the_call_names():
    held, entered = threading.Event(), threading.Event()

    def wait(user):
        if user == "kim":
            entered.set()
            held.wait(10)
        return user

    policy = Policy(
        "a", bulkhead=BulkheadParameters(limit=5, per_key_limit=1), key=lambda user: user
    )
    guarded = policy(wait)
    thread = threading.Thread(target=guarded, args=("kim",))
    thread.start()
    assert entered.wait(10)
    try:
        assert guarded(user="lee") == "lee"
        with pytest.raises(BulkheadFull):
            guarded("kim")
        with pytest.raises(BulkheadFull):
            policy.run(wait, "kim")
        assert policy.run(wait, "lee").value == "lee"
    finally:
        held.set()
        thread.join()


def test_deadline_bounds_all_tries_and_the_timeout_each():
    seen = []

    def call():
        seen.append(left())
        raise TimeoutError

    policy = Policy("a", retry=AT_ONCE, timeout_seconds=5, deadline_seconds=3)
    with pytest.raises(TimeoutError):
        policy(call)()

    assert len(seen) == 3
    assert all(0 < each <= 3 for each in seen)
    assert left() is None


def test_coroutine_is_cut_off_by_try_and_in_all():
    calls = []

    async def hang():
        calls.append(1)
        await asyncio.sleep(60)

    policy = Policy(
        "a", retry=RetryParameters(base_seconds=0, attempts=100), timeout_seconds=0.2,
        deadline_seconds=0.5,
    )  # fmt: skip

    async def story():
        with pytest.raises(DeadlineExceeded):
            await policy(hang)()

    began = time.monotonic()
    asyncio.run(story())

    assert 0.4 < time.monotonic() - began < 10
    assert 2 <= len(calls) <= 3
    assert policy.counters.counted()["timeout"] >= 2


def test_signature_and_kind_stay():
    def plain(a: int, *, b: str = "x") -> float:
        """Says so."""
        return 1.0

    async def later(a: int) -> float:
        return 1.0

    policy = Policy("a", retry=AT_ONCE, timeout_seconds=1, bulkhead="critical", fallback=plain)

    assert inspect.signature(policy(plain)) == inspect.signature(plain)
    assert (policy(plain).__name__, policy(plain).__doc__) == ("plain", "Says so.")
    assert inspect.iscoroutinefunction(policy(later))


def test_method_and_class_method_are_called_as_such():
    policy = Policy("a", retry=AT_ONCE, bulkhead="critical")

    class Service:
        @policy
        def method(self, number):
            return self, number

        @classmethod
        @policy
        def build(cls, number):
            return cls, number

    service = Service()
    assert service.method(1) == (service, 1)
    assert Service.build(number=2) == (Service, 2)


def test_unknown_argument_is_named():
    with pytest.raises(TypeError, match="retries"):
        Policy("a", retries=3)


def test_answer_says_how_it_came_about():
    call, _ = failing(TimeoutError("too slow"))
    policy = Policy("a", fallback=Fallback("b", default="nothing"))

    answer = policy.run(call, 1)

    assert (answer.value, answer.source, answer.is_partial) == ("nothing", "default", True)
    assert answer.causes == ("TimeoutError: too slow",)
    assert Policy("a").run(lambda: 5) == Answer(5)
    assert policy.counters.counted()["fallback"] == 1


def test_answer_of_a_coroutine_function():
    async def call(number):
        if number:
            raise TimeoutError
        return number

    async def stand_in(number):
        return -number

    policy = Policy("a", fallback=stand_in)

    async def story():
        return [(await policy.arun(call, number)).value for number in (0, 3)]

    assert asyncio.run(story()) == [0, -3]


def test_policy_is_used_by_many_threads_at_once():
    policy = Policy("a", retry=AT_ONCE, bulkhead=BulkheadParameters(limit=50), deadline_seconds=60)
    guarded = policy(lambda number: number)
    results = []

    def many():
        results.append(sum(guarded(number) for number in range(200)))

    threads = [threading.Thread(target=many) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [199 * 100] * 20
    assert policy.counters.counted()["success"] == 4000
    assert policy.bulkhead.look().in_flight == 0


def test_coroutine_function_is_for_arun_and_counts_for_nothing():
    policy = Policy("a", fallback=lambda: "instead", retry=RetryParameters(base_seconds=0))
    begun = []

    async def ask():
        begun.append(1)

    for each in (policy, Policy("b")):
        with pytest.raises(TypeError, match="arun"):
            each.run(ask)
        counted = each.counters.counted()
        assert (counted["success"], counted["failure"], counted["retry"]) == (0, 0, 0)
    assert not begun


def test_what_stands_in_now_is_told():
    fallback = Policy("a", fallback=lambda: 1).fallback

    assert fallback.name == "a"
    assert Policy("a").fallback is None
