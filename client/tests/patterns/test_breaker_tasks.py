"""A breaker shared by many tasks."""

import asyncio
import contextlib

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.patterns.half_open_breakers import half_open_soon

PATIENCE = 30.0


def test_1000_tasks_at_once_are_all_counted_once() -> None:
    breaker = Breaker("d", BreakerParameters(window_size=2000, failure_rate=1))

    @breaker
    async def decorated(fails: bool) -> None:
        await asyncio.sleep(0.001)
        if fails:
            raise ValueError("no")

    async def entered(fails: bool) -> None:
        async with breaker:
            await asyncio.sleep(0.001)
            if fails:
                raise ValueError("no")

    async def main() -> None:
        calls = [decorated(n % 4 == 0) if n % 2 else entered(n % 4 == 0) for n in range(1000)]
        await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE)

    asyncio.run(main())
    counted, status = breaker.counters.counted(), breaker.look()
    assert (counted["success"], counted["failure"]) == (750, 250)
    assert (status.calls, status.failure_rate) == (1000, 0.25)


def test_1000_tasks_at_a_breaker_due_to_probe_never_exceed_its_limits() -> None:
    breaker = half_open_soon(calls=9, concurrent=4)
    inside = most = begun = 0

    @breaker
    async def call() -> None:
        nonlocal inside, most, begun
        inside, begun = inside + 1, begun + 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        raise ValueError("no")

    async def again_and_again() -> None:
        for _ in range(5):
            with contextlib.suppress(CircuitOpen, ValueError):
                await call()
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(again_and_again() for _ in range(1000)))

    asyncio.run(main())
    assert (begun, most) == (9, 4)
    assert breaker.state == "open"


@pytest.mark.parametrize("way", ["decorator", "with"])
def test_a_cancelled_probe_is_given_back_uncounted(way: str) -> None:
    breaker = half_open_soon(calls=2)
    before = breaker.counters.counted()

    async def sleep() -> None:
        await asyncio.sleep(PATIENCE)

    async def entered() -> None:
        async with breaker:
            await sleep()

    call = breaker(sleep) if way == "decorator" else entered

    async def main() -> None:
        for _ in range(5):
            task = asyncio.create_task(call())
            await asyncio.sleep(0)
            with pytest.raises(CircuitOpen):
                breaker.admit()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    after = breaker.counters.counted()
    assert after.pop("rejected") == before.pop("rejected") + 5
    assert after == before
    breaker.succeed(breaker.admit())
    breaker.succeed(breaker.admit())
    assert breaker.state == "closed"


def test_a_task_started_inside_the_block_leaves_its_own_entry() -> None:
    """The task has the context of its parent, including its entries."""
    breaker = half_open_soon(calls=3, concurrent=2)

    async def child() -> None:
        async with breaker:
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with breaker:
            task = asyncio.create_task(child())
            await asyncio.sleep(0)
            with pytest.raises(CircuitOpen):
                breaker.admit()
        await task

    asyncio.run(main())
    assert breaker.counters.counted()["success"] == 2
    breaker.succeed(breaker.admit())
    assert breaker.state == "closed"


def test_a_timeout_of_the_call_itself_counts_and_one_from_outside_does_not() -> None:
    breaker = Breaker("d")

    @breaker
    async def times_out() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(PATIENCE)

    @breaker
    async def sleep() -> None:
        await asyncio.sleep(PATIENCE)

    async def cut_off() -> None:
        async with asyncio.timeout(0.001):
            await sleep()

    for call in (times_out, cut_off):
        with pytest.raises(TimeoutError):
            asyncio.run(call())

    counted = breaker.counters.counted()
    assert (counted["timeout"], counted["failure"], counted["success"]) == (1, 0, 0)
