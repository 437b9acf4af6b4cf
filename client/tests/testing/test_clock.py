"""`FakeClock`: back-offs advance it, and all patterns see the time pass."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from switchgear import (
    Breaker,
    BreakerParameters,
    Bulkhead,
    BulkheadFull,
    BulkheadParameters,
    CircuitOpen,
    Deadline,
    DeadlineExceeded,
    Retry,
    RetryParameters,
    Timeout,
)
from switchgear.patterns.deadline import left
from switchgear.patterns.timeout import CallTimeout
from switchgear.testing import Console, FakeClock

HOUR = 3600.0
FOUR = RetryParameters(attempts=4, base_seconds=10, cap_seconds=60)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def gear(clock):
    return Console(clock).client(service="core")


def fails():
    raise ConnectionError("gone")


async def afails():
    raise ConnectionError("gone")


def test_sleep_advances_the_clock_and_returns_at_once(clock):
    began = time.monotonic()

    clock.sleep(HOUR)
    asyncio.run(clock.async_sleep(HOUR))

    assert clock.monotonic() == 2 * HOUR
    assert time.monotonic() - began < 10


def test_sleep_in_a_coroutine_lets_other_tasks_run(clock):
    steps = []

    async def other():
        steps.append(clock.monotonic())

    async def main():
        task = asyncio.create_task(other())
        await clock.async_sleep(1)
        assert steps == [1.0]
        await task

    asyncio.run(main())


def test_time_does_not_go_back(clock):
    with pytest.raises(ValueError, match="back"):
        clock.sleep(-1)


def test_policy_with_four_attempts_is_over_at_once_and_the_time_has_passed(clock, gear):
    policy = gear.policy("core->oracle", retry=FOUR)
    began = time.monotonic()

    with pytest.raises(ConnectionError) as caught:
        policy(fails)()

    assert time.monotonic() - began < 5
    assert 0 < clock.monotonic() <= 10 + 20 + 40
    assert caught.value.switchgear_retried.seconds == clock.monotonic()


def test_policy_of_a_coroutine_is_over_at_once_and_lets_other_tasks_run(clock, gear):
    policy = gear.policy("core->oracle", retry=FOUR)
    moments = []

    async def other():
        for _ in range(3):
            moments.append(clock.monotonic())
            await asyncio.sleep(0)

    async def main():
        task = asyncio.create_task(other())
        with pytest.raises(ConnectionError):
            await policy(afails)()
        await task

    asyncio.run(main())
    assert moments[0] < moments[1] < moments[2]


def test_back_offs_of_a_loop_over_a_policy_advance_the_clock(clock, gear):
    def ask():
        for attempt in gear.policy("core->oracle", retry=FOUR):
            with attempt:
                fails()

    with pytest.raises(ConnectionError):
        ask()

    assert clock.monotonic() > 0


def test_retry_alone_takes_the_clock_and_its_sleep(clock):
    states = []
    retry = Retry("a", FOUR, clock=clock.monotonic, sleep=clock.sleep, on_retry=states.append)

    with pytest.raises(ConnectionError):
        retry(fails)()
    with pytest.raises(ConnectionError):
        asyncio.run(retry(afails)())

    assert len(states) == 6
    assert clock.monotonic() == sum(state.wait_seconds for state in states)


def test_deadline_of_a_policy_sees_the_back_offs(clock, gear):
    policy = gear.policy("core->oracle", retry=FOUR, deadline_seconds=5)
    steps = []

    @policy
    def ask():
        steps.append(left())
        clock.advance(3)
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError) as caught:
        ask()

    assert steps[0] == 5
    assert caught.value.switchgear_retried.why == "deadline"


def test_breaker_of_a_client_probes_after_its_open_time(clock, gear):
    breaker = BreakerParameters(
        failure_count=3, minimum_calls=1, open_seconds=30, open_jitter=0, half_open_calls=1
    )
    policy = gear.policy("core->oracle", retry=RetryParameters(attempts=3), breaker=breaker)
    with pytest.raises(ConnectionError):
        policy(fails)()
    with pytest.raises(CircuitOpen):
        policy(lambda: "fine")()

    clock.advance(31)

    assert policy(lambda: "fine")() == "fine"
    assert policy.breaker.state == "closed"


def test_budget_of_retries_refills_as_the_clock_is_advanced(clock, gear):
    few = RetryParameters(attempts=2, budget_rate=0, budget_per_second=0.1, base_seconds=0.001)
    ask = gear.policy("core->oracle", retry=few)(fails)
    tries = []

    for _ in range(3):
        with pytest.raises(ConnectionError) as caught:
            ask()
        tries.append(caught.value.switchgear_retried.attempts)
        if len(tries) == 2:
            clock.advance(11)

    assert tries == [2, 1, 2]


@pytest.mark.parametrize(("kind", "error"), [(Timeout, CallTimeout), (Deadline, DeadlineExceeded)])
def test_coroutine_is_cut_off_when_the_clock_is_advanced_past_its_limit(clock, kind, error):
    async def main():
        hung = asyncio.Event()

        @kind(HOUR, clock=clock.monotonic)
        async def hang():
            hung.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await hung.wait()
        clock.advance(HOUR - 1)
        await asyncio.sleep(0.01)
        assert not task.done()
        clock.advance(1)
        with pytest.raises(error):
            await task

    asyncio.run(main())


def test_timeout_and_deadline_of_a_policy_are_cut_off_by_the_clock(clock, gear):
    policy = gear.policy("core->oracle", timeout_seconds=HOUR)
    whole = gear.policy("core->other", deadline_seconds=HOUR)

    async def cut_off(policy):
        hung = asyncio.Event()

        async def hang():
            hung.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(policy(hang)())
        await hung.wait()
        clock.advance(HOUR)
        await task

    with pytest.raises(CallTimeout):
        asyncio.run(cut_off(policy))
    with pytest.raises(DeadlineExceeded):
        asyncio.run(cut_off(whole))
    assert [each.counters.counted()["timeout"] for each in (policy, whole)] == [1, 1]


def test_call_that_ended_in_time_is_not_cut_off_later(clock):
    limit = Timeout(10, clock=clock.monotonic)

    async def main():
        async with limit:
            pass
        clock.advance(20)
        await asyncio.sleep(0.01)
        return "here"

    assert asyncio.run(main()) == "here"


QUEUE = BulkheadParameters(limit=1, queue=5, queue_seconds=300)


def test_wait_in_a_queue_ends_when_the_clock_is_advanced_past_it(clock, gear):
    bulkhead = gear.bulkhead("core->oracle", QUEUE)

    async def main():
        async with bulkhead:
            waiting = asyncio.create_task(bulkhead.acquire_async())
            while not bulkhead.look().queued:
                await asyncio.sleep(0)
            clock.advance(299)
            await asyncio.sleep(0.01)
            assert not waiting.done()
            clock.advance(1)
            with pytest.raises(BulkheadFull, match="within 300"):
                await waiting

    asyncio.run(main())


def test_wait_of_a_thread_in_a_queue_ends_when_the_clock_is_advanced_past_it(clock):
    bulkhead = Bulkhead("a", QUEUE, clock=clock.monotonic)

    with bulkhead, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(bulkhead.acquire)
        wait_until(lambda: bulkhead.look().queued == 1)
        clock.advance(300)
        with pytest.raises(BulkheadFull):
            waiting.result(30)


def test_waiter_in_a_queue_is_admitted_and_the_clock_stands_still(clock):
    bulkhead = Bulkhead("a", QUEUE, clock=clock.monotonic)

    with ThreadPoolExecutor(1) as thread:
        with bulkhead:
            waiting = thread.submit(bulkhead.acquire)
            wait_until(lambda: bulkhead.look().queued == 1)
        waiting.result(30).release()

    assert clock.monotonic() == 0


def test_idle_wait_in_a_queue_ends_after_a_second(clock):
    bulkhead = Bulkhead("a", QUEUE, clock=clock.monotonic)
    began = time.monotonic()

    with bulkhead, pytest.raises(BulkheadFull), bulkhead:
        pass

    assert time.monotonic() - began < 30
    assert clock.monotonic() == 300


def test_idle_wait_of_a_coroutine_ends_after_a_second(clock):
    bulkhead = Bulkhead("a", QUEUE, clock=clock.monotonic)

    async def main():
        async with bulkhead:
            with pytest.raises(BulkheadFull):
                await bulkhead.acquire_async()

    asyncio.run(main())
    assert clock.monotonic() == 300


def test_threads_that_advance_it_at_once_lose_no_second(clock):
    both = threading.Barrier(4)

    def advance(_):
        both.wait()
        for _ in range(1000):
            clock.advance(1)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(advance, range(4)))

    assert clock.monotonic() == 4000


def test_client_with_the_machines_clock_waits_for_its_back_offs():
    policy = Console().client().policy("core->oracle", retry=RetryParameters(attempts=2))
    late = ConnectionError("gone")
    late.retry_after = 0.05

    def refuses():
        raise late

    began = time.monotonic()
    with pytest.raises(ConnectionError):
        policy(refuses)()

    assert time.monotonic() - began >= 0.05


def test_breaker_alone_takes_the_clock(clock):
    breaker = Breaker(
        "a",
        BreakerParameters(failure_count=1, minimum_calls=1, open_seconds=30, open_jitter=0),
        clock=clock.monotonic,
    )
    with pytest.raises(ConnectionError):
        breaker(fails)()

    clock.sleep(30)

    assert breaker(lambda: "fine")() == "fine"


def wait_until(is_so):
    ends = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.001)
