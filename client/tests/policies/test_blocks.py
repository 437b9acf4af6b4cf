"""A policy around blocks, and around the tries of a loop."""

import asyncio
import time

import pytest

from switchgear import (
    BreakerParameters,
    BulkheadFull,
    BulkheadParameters,
    CircuitOpen,
    DeadlineExceeded,
    Policy,
    RetryParameters,
)
from switchgear.patterns.deadline import left

AT_ONCE = RetryParameters(base_seconds=0)
FIRST = BreakerParameters(failure_count=1)


def fail(policy, numbers):
    """Try something that never succeeds; `numbers` gets those of the tries."""
    for attempt in policy:
        with attempt:
            numbers.append(attempt.number)
            raise TimeoutError


def test_block_is_in_all_but_retries_and_fallback():
    policy = Policy("a", retry=AT_ONCE, breaker=FIRST, deadline_seconds=5, bulkhead="critical",
                    fallback=lambda: 1)  # fmt: skip

    def divide():
        with policy:
            assert policy.bulkhead.look().in_flight == 1
            assert left() <= 5
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        divide()

    assert policy.bulkhead.look().in_flight == 0
    assert left() is None
    with pytest.raises(CircuitOpen), policy:
        raise AssertionError("it was entered")


def test_block_of_a_coroutine_is_cut_off():
    policy = Policy("a", timeout_seconds=0.1)

    async def story():
        async with policy:
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(story())
    assert policy.counters.counted()["timeout"] == 1


def test_blocks_nest_and_overlap_among_tasks():
    policy = Policy("a", bulkhead=BulkheadParameters(limit=20), deadline_seconds=9)

    async def one(seconds):
        async with policy:
            await asyncio.sleep(seconds)
            with policy:
                await asyncio.sleep(seconds)

    async def story():
        await asyncio.gather(*(one(0.01 * (number % 3)) for number in range(10)))

    asyncio.run(story())
    assert policy.bulkhead.look().in_flight == 0
    assert policy.counters.counted()["success"] == 20


def test_tries_of_a_loop():
    policy = Policy("a", retry=AT_ONCE, bulkhead="critical", deadline_seconds=5)
    numbers = []

    for attempt in policy:
        with attempt:
            numbers.append((attempt.number, policy.bulkhead.look().in_flight, left() <= 5))
            if attempt.number < 3:
                raise TimeoutError

    assert numbers == [(1, 1, True), (2, 1, True), (3, 1, True)]
    assert left() is None
    assert policy.bulkhead.look().in_flight == 0
    assert policy.counters.counted()["timeout"] == 2


def test_last_error_of_a_loop_is_raised():
    policy = Policy("a", retry=AT_ONCE)

    with pytest.raises(TimeoutError):
        fail(policy, numbers := [])

    assert numbers == [1, 2, 3]


def test_loop_without_retries_is_gone_through_once():
    numbers = []

    for attempt in Policy("a"):
        with attempt:
            numbers.append(attempt.number)

    assert numbers == [1]


def test_loop_that_is_left_leaves_nothing_behind():
    policy = Policy("a", retry=AT_ONCE, deadline_seconds=5)

    async def once():
        async for attempt in policy:
            async with attempt:
                return left()
        raise AssertionError("there was no try")

    async def story():
        assert await once() <= 5
        assert left() is None
        with policy:
            assert policy.counters.counted()["success"] == 1

    asyncio.run(story())


def test_tries_of_a_coroutine_are_cut_off_by_the_deadline():
    policy = Policy("a", retry=RetryParameters(base_seconds=0), deadline_seconds=0.3)

    async def story():
        async for attempt in policy:
            async with attempt:
                await asyncio.sleep(60)

    began = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        asyncio.run(story())
    assert time.monotonic() - began < 10


def test_open_breaker_ends_a_loop():
    policy = Policy("a", retry=AT_ONCE, breaker=FIRST)

    with pytest.raises(CircuitOpen):
        fail(policy, numbers := [])

    assert numbers == [1]


def test_error_while_a_try_is_entered_gives_back_what_was_entered():
    policy = Policy("a", bulkhead=BulkheadParameters(limit=1))

    with policy:
        with pytest.raises(BulkheadFull):
            fail(policy, numbers := [])
        counted = policy.counters.counted()

    assert numbers == []
    assert (counted["success"], counted["failure"]) == (0, 0)
    assert policy.bulkhead.look().in_flight == 0
