"""The limit of a generator is in force during its steps, and not between them."""

import asyncio

import pytest

from switchgear.patterns.deadline import Deadline, DeadlineExceeded, NoTimeLeft, left
from switchgear.patterns.parameters import BreakerParameters
from switchgear.patterns.timeout import CallTimeout, Timeout
from switchgear.policies.policy import Policy
from tests.patterns.clocks import Clock

KINDS = [Timeout, Deadline]


def policy(seconds, **given):
    return Policy("a->b", deadline_seconds=seconds, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_the_consumer_is_not_limited(kind):
    clock = Clock()
    remaining = []

    @kind(1, clock=clock)
    def numbers():
        remaining.append(left())
        yield 1
        remaining.append(left())

    stream = numbers()
    assert next(stream) == 1
    assert left() is None
    clock.goes(0.25)
    assert list(stream) == []
    assert remaining == [1, 0.75]


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_begins_after_it(kind):
    clock = Clock()
    closed = []

    @kind(1, clock=clock)
    def numbers():
        try:
            yield 1
            yield 2
        finally:
            closed.append(left())

    stream = numbers()
    next(stream)
    clock.goes(2)
    with pytest.raises(NoTimeLeft):
        next(stream)
    assert closed == [None]


@pytest.mark.parametrize("kind", [*KINDS, policy])
def test_sent_thrown_and_returned_values_pass_through(kind):
    @kind(60)
    def echo():
        sent = yield "first"
        try:
            yield sent
        except ValueError as error:
            yield repr(error)
        return "last"

    stream = echo()
    assert [next(stream), stream.send("second"), stream.throw(ValueError("third"))] == [
        "first",
        "second",
        "ValueError('third')",
    ]
    with pytest.raises(StopIteration) as end:
        next(stream)
    assert end.value.value == "last"


@pytest.mark.parametrize("kind", [*KINDS, policy])
def test_the_consumers_own_await_is_not_cancelled(kind):
    @kind(0.05)
    async def numbers():
        yield 1
        yield 2

    async def main():
        stream = numbers()
        assert await anext(stream) == 1
        await asyncio.sleep(0.15)
        assert asyncio.current_task().cancelling() == 0
        with pytest.raises(NoTimeLeft):
            await anext(stream)

    asyncio.run(main())


@pytest.mark.parametrize(("kind", "error"), [(Timeout, CallTimeout), (Deadline, DeadlineExceeded)])
def test_a_step_that_hangs_is_cut_off(kind, error):
    closed = []

    @kind(0.05)
    async def numbers():
        try:
            yield (yield 1)
            await asyncio.sleep(60)
        finally:
            closed.append(True)

    async def main():
        stream = numbers()
        assert [await anext(stream), await stream.asend(2)] == [1, 2]
        with pytest.raises(error):
            await anext(stream)
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(0)

    asyncio.run(main())
    assert closed == [True]


def test_a_stream_that_is_left_early_is_closed():
    closed = []

    @policy(60)
    async def numbers():
        try:
            yield 1
        finally:
            closed.append(True)

    async def main():
        stream = numbers()
        await anext(stream)
        await stream.aclose()

    asyncio.run(main())
    assert closed == [True]


def test_the_breaker_of_a_policy_counts_a_stream_that_hangs():
    limited = policy(0.05, breaker=BreakerParameters(failure_count=1))

    @limited
    async def numbers():
        yield 1
        await asyncio.sleep(60)

    async def main():
        return [each async for each in numbers()]

    with pytest.raises(DeadlineExceeded):
        asyncio.run(main())
    assert limited.breaker.state == "open"
