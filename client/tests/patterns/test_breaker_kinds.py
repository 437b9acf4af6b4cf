"""The kinds of functions and blocks that a breaker decorates."""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import BreakerStatus
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.patterns.clocks import Clock
from tests.patterns.half_open_breakers import half_open_soon


def totals(breaker: Breaker) -> tuple[int, int]:
    """Return the numbers of successes and failures."""
    counted = breaker.counters.counted()
    return counted["success"], counted["failure"]


def test_kind_name_and_signature_stay() -> None:
    breaker = Breaker("d")

    def plain(a: int, /, b: str = "x", *, c: float) -> str:
        """Its text."""
        return f"{a}{b}{c}"

    async def coroutine(a: int) -> int:
        return a

    def generator() -> Iterator[int]:
        yield 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    for function in (plain, coroutine, generator, stream):
        decorated = breaker(function)
        assert inspect.signature(decorated) == inspect.signature(function)
        assert decorated.__name__ == function.__name__
        assert decorated.__doc__ == function.__doc__
        for kind in (
            inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction,
        ):  # fmt: skip
            assert kind(decorated) == kind(function)
    assert breaker(plain)(1, c=2.5) == "1x2.5"
    assert asyncio.run(breaker(coroutine)(7)) == 7


def test_methods_of_all_kinds_and_partials() -> None:
    breaker = Breaker("d")

    class Oracle:
        @breaker
        def ask(self, n: int) -> tuple[object, int]:
            return self, n

        @breaker
        @classmethod
        def make(cls, n: int) -> tuple[object, int]:
            return cls, n

        @breaker
        @staticmethod
        def add(n: int) -> int:
            return n + 1

    oracle = Oracle()
    assert oracle.ask(1) == (oracle, 1)
    assert Oracle.make(2) == (Oracle, 2)
    assert oracle.add(3) == 4
    assert breaker(functools.partial(pow, 2))(3) == 8
    assert totals(breaker) == (4, 0)


def test_a_class_can_not_be_decorated() -> None:
    with pytest.raises(TypeError, match="only functions and methods"):
        Breaker("d")(int)


def test_a_generator_is_one_call_from_its_first_step_to_its_end() -> None:
    breaker = half_open_soon(calls=2, concurrent=1)

    @breaker
    def numbers(fail: bool) -> Iterator[int]:
        yield 1
        if fail:
            raise ValueError("no")
        yield 2

    waiting = numbers(False)
    assert breaker.state == "open"
    assert next(waiting) == 1
    assert breaker.state == "half_open"
    with pytest.raises(CircuitOpen):
        next(numbers(False))
    assert list(waiting) == [2]
    with pytest.raises(ValueError, match="no"):
        list(numbers(True))

    assert totals(breaker) == (1, 2)
    assert breaker.state == "open"


def test_abandoned_generator_releases_its_permit() -> None:
    breaker = half_open_soon(calls=1, concurrent=5)

    @breaker
    def numbers() -> Iterator[int]:
        yield from (1, 2, 3)

    @breaker
    async def stream() -> AsyncIterator[int]:
        for n in (1, 2, 3):
            yield n

    async def part() -> None:
        steps = stream()
        assert await anext(steps) == 1
        await steps.aclose()  # type: ignore[attr-defined]

    for _ in range(3):
        steps = numbers()
        next(steps)
        steps.close()  # type: ignore[attr-defined]
        asyncio.run(part())

    assert totals(breaker) == (0, 1)
    assert breaker.state == "half_open"
    assert list(numbers()) == [1, 2, 3]
    assert breaker.state == "closed"


def test_one_object_is_entered_again_within_itself() -> None:
    breaker = half_open_soon(calls=3, concurrent=3)

    with breaker:
        with breaker as given, breaker:
            assert given is breaker
        assert totals(breaker) == (2, 1)

    assert totals(breaker) == (3, 1)
    assert breaker.state == "closed"


def test_two_breakers_left_in_the_wrong_order_keep_their_own() -> None:
    one, other = half_open_soon(calls=1, concurrent=5), half_open_soon(calls=1, concurrent=5)
    first, second = ExitStack(), ExitStack()
    first.enter_context(one)
    second.enter_context(other)
    first.close()
    assert (one.state, other.state) == ("closed", "half_open")
    second.close()

    assert (totals(one), totals(other)) == ((1, 1), (1, 1))
    assert other.state == "closed"


def test_block_left_in_another_context_settles_no_other_probe() -> None:
    """A generator stepped by a thread pool runs each step in a copy of the context."""
    breaker = half_open_soon(calls=1, concurrent=5)
    probe = breaker.admit()
    contextvars.copy_context().run(breaker.__exit__, None, None, None)
    assert breaker.state == "half_open"
    with pytest.raises(CircuitOpen):
        breaker.admit()

    breaker.succeed(probe)
    assert breaker.state == "closed"


def test_the_block_is_timed() -> None:
    clock = Clock()
    breaker = Breaker("d", BreakerParameters(slow_call_seconds=1), clock=clock)

    with breaker:
        clock.goes(1.5)
        with breaker:
            clock.goes(0.5)

    assert breaker.counters.counted()["slow"] == 1


def test_the_call_runs_without_the_lock_and_may_use_the_breaker() -> None:
    breaker = Breaker("d")

    @breaker
    def call() -> BreakerStatus:
        breaker.configure(BreakerParameters(failure_count=1))
        breaker.force("forced_closed")
        breaker.unforce()
        return breaker.look()

    assert call().calls == 0
    assert breaker.look().calls == 0  # It began in another generation.
    assert totals(breaker) == (1, 0)
