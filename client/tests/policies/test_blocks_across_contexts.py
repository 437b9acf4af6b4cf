"""Blocks of a policy that are left in another context than they were entered in."""

import asyncio
import contextlib
import contextvars

import pytest

from switchgear import BreakerParameters, BulkheadParameters, CircuitOpen, Policy, RetryParameters
from switchgear.patterns.deadline import left

ONE = BulkheadParameters(limit=1)
PROBING = BreakerParameters(
    failure_count=1, open_seconds=0.001, open_jitter=0, half_open_calls=1, half_open_concurrent=1
)


@contextlib.contextmanager
def dependency(policy):
    """Run each step in a context of its own, as web frameworks do."""
    with policy:
        yield


async def through(entered, error=None):
    await asyncio.to_thread(entered.__enter__)
    if error is None:
        await asyncio.to_thread(entered.__exit__, None, None, None)
    else:
        with contextlib.suppress(type(error)):
            await asyncio.to_thread(entered.__exit__, type(error), error, None)


def half_open(policy):
    policy.breaker.fail(policy.breaker.admit(), TimeoutError())
    while policy.breaker.state != "half_open":
        with contextlib.suppress(CircuitOpen):
            policy.breaker.release(policy.breaker.admit())


def test_place_and_probe_are_given_back():
    policy = Policy("a", bulkhead=ONE, breaker=PROBING, timeout_seconds=60, deadline_seconds=60)
    half_open(policy)

    asyncio.run(through(dependency(policy)))

    assert policy.bulkhead.look().in_flight == 0
    assert policy.counters.counted()["success"] == 0
    assert policy.run(lambda: 1).value == 1
    assert policy.breaker.state == "closed"


def test_limits_hold_no_longer_where_it_was_entered():
    policy = Policy("a", timeout_seconds=60, deadline_seconds=60)
    here, there = contextvars.copy_context(), contextvars.copy_context()

    here.run(policy.__enter__)
    assert here.run(left) > 50
    there.run(policy.__exit__, None, None, None)

    assert here.run(left) is None


def test_cancellation_by_the_timeout_ends_with_it():
    policy = Policy("a", timeout_seconds=0.05)

    async def story():
        there = contextvars.copy_context()
        await policy.__aenter__()
        await asyncio.create_task(policy.__aexit__(None, None, None), context=there)
        await asyncio.sleep(0.2)

    asyncio.run(story())


def test_many_at_once_leave_as_many_as_were_entered():
    policy = Policy("a", bulkhead=BulkheadParameters(limit=50), timeout_seconds=60)

    async def own():
        async with policy:
            await asyncio.sleep(0.01)

    async def story():
        errors = [None, ValueError("bad"), None]
        strays = [through(dependency(policy), errors[n % 3]) for n in range(20)]
        await asyncio.gather(*strays, *(own() for _ in range(20)))

    asyncio.run(story())
    assert policy.bulkhead.look().in_flight == 0
    assert policy._blocks._entered == {}


def test_block_is_left_by_whoever_is_left_over():
    policy = Policy("a", bulkhead=BulkheadParameters(limit=2))
    stray, own, third = (contextvars.copy_context() for _ in range(3))
    own.run(policy.__enter__)
    stray.run(policy.__enter__)

    third.run(policy.__exit__, None, None, None)
    assert policy.bulkhead.look().in_flight == 1
    own.run(policy.__exit__, None, None, None)
    assert policy.bulkhead.look().in_flight == 0
    own.run(policy.__exit__, None, None, None)
    assert policy.bulkhead.look().in_flight == 0


@pytest.mark.parametrize("error", [None, TimeoutError("slow")])
def test_try_that_ends_elsewhere_counts_as_it_went(error):
    policy = Policy("a", retry=RetryParameters(attempts=2, base_seconds=0), bulkhead=ONE,
                    timeout_seconds=60, deadline_seconds=60)  # fmt: skip
    trial = next(iter(policy))
    here, there = contextvars.copy_context(), contextvars.copy_context()

    here.run(trial.__enter__)
    there.run(trial.__exit__, type(error) if error else None, error, None)

    counted = policy.counters.counted()
    assert (counted["success"], counted["timeout"]) == ((1, 0) if error is None else (0, 1))
    assert policy.bulkhead.look().in_flight == 0
