"""Time in our own queue is neither the callee's slowness nor its timeout."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextvars import Context

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline, DeadlineExceeded
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters
from switchgear.patterns.queue_time import CallTimer, QueueWait
from switchgear.patterns.timeout import CallTimeout, Timeout
from switchgear.policies.policy import Policy
from switchgear.refusals import BulkheadFull
from tests.patterns.clocks import Clock

CALLS = 8
CALL_SECONDS = 0.05
SLOW = BreakerParameters(minimum_calls=4, slow_call_seconds=0.25, slow_call_rate=0.3)
"""The last three of eight calls of 0.05 s, one at a time, are slower than that with their wait."""
ONE_AT_A_TIME = BulkheadParameters(limit=1, queue=20, queue_seconds=10)


def together(call: Callable[[], object]) -> None:
    """Make all calls at once, each in a thread."""
    threads = [threading.Thread(target=call) for _ in range(CALLS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)


def work() -> None:
    threading.Event().wait(CALL_SECONDS)


async def awork() -> None:
    await asyncio.sleep(CALL_SECONDS)


def decorated(breaker: Breaker, bulkhead: Bulkhead) -> None:
    together(breaker(bulkhead(work)))


def in_a_task_of_its_own(breaker: Breaker, bulkhead: Bulkhead) -> None:
    """Await it in a task, like `asyncio.wait_for` in Python 3.11 and `asyncio.gather`."""

    @breaker
    async def call() -> None:
        await asyncio.create_task(bulkhead(awork)())

    async def all_at_once() -> None:
        await asyncio.gather(*(call() for _ in range(CALLS)))

    asyncio.run(all_at_once())


def block(breaker: Breaker, bulkhead: Bulkhead) -> None:
    def call() -> None:
        with breaker, bulkhead:
            work()

    together(call)


def generator(breaker: Breaker, bulkhead: Bulkhead) -> None:
    @breaker
    @bulkhead
    def stream() -> Iterator[int]:
        work()
        yield 1

    together(lambda: list(stream()))


def generator_stepped_in_other_contexts(breaker: Breaker, bulkhead: Bulkhead) -> None:
    """Step it like the thread pool of a web framework."""

    @breaker
    @bulkhead
    def stream() -> Iterator[int]:
        work()
        yield 1

    def call() -> None:
        steps = stream()
        while Context().run(next, steps, None) is not None:
            pass

    together(call)


def coroutine(breaker: Breaker, bulkhead: Bulkhead) -> None:
    call = breaker(bulkhead(awork))

    async def main() -> None:
        await asyncio.gather(*(call() for _ in range(CALLS)))

    asyncio.run(main())


def async_block(breaker: Breaker, bulkhead: Bulkhead) -> None:
    async def call() -> None:
        async with breaker, bulkhead:
            await awork()

    async def main() -> None:
        await asyncio.gather(*(call() for _ in range(CALLS)))

    asyncio.run(main())


KINDS = [
    decorated,
    in_a_task_of_its_own,
    block,
    generator,
    generator_stepped_in_other_contexts,
    coroutine,
    async_block,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_calls_that_waited_for_a_place_are_not_slow(
    kind: Callable[[Breaker, Bulkhead], None],
) -> None:
    breaker = Breaker("d", SLOW)

    kind(breaker, Bulkhead("d", ONE_AT_A_TIME))

    counted = breaker.counters.counted()
    assert (counted["success"], counted["slow"]) == (CALLS, 0)
    assert breaker.state == "closed"


@pytest.mark.parametrize("kind", [decorated, block, coroutine], ids=lambda kind: kind.__name__)
def test_calls_that_were_slow_themselves_are_slow_also_after_a_wait(
    kind: Callable[[Breaker, Bulkhead], None],
) -> None:
    breaker = Breaker("d", BreakerParameters(minimum_calls=4, slow_call_seconds=CALL_SECONDS / 2))

    kind(breaker, Bulkhead("d", ONE_AT_A_TIME))

    assert breaker.counters.counted()["slow"] >= 4
    assert breaker.state == "open"


@pytest.mark.parametrize("use", ["run", "decorator", "block", "attempts"])
def test_calls_of_a_policy_that_waited_for_a_place_are_not_slow(use: str) -> None:
    policy = Policy("d", breaker=SLOW, bulkhead=ONE_AT_A_TIME)
    decorated = policy(work)

    def call() -> None:
        if use == "run":
            policy.run(work)
        elif use == "decorator":
            decorated()
        elif use == "block":
            with policy:
                work()
        else:
            for attempt in policy:
                with attempt:
                    work()

    together(call)

    counted = policy.counters.counted()
    assert (counted["success"], counted["slow"]) == (CALLS, 0)


def test_waits_in_tasks_of_one_block_are_taken_off_it() -> None:
    breaker, bulkhead = Breaker("d", SLOW), Bulkhead("d", ONE_AT_A_TIME)

    async def main() -> None:
        async with breaker:
            await asyncio.gather(*(bulkhead(awork)() for _ in range(CALLS)))

    asyncio.run(main())

    assert breaker.counters.counted()["slow"] == 0


def test_waits_are_taken_off_by_the_clock_of_the_timer() -> None:
    clock = Clock()
    timer = CallTimer(clock)
    clock.goes(1)

    with QueueWait():
        clock.goes(10)
    clock.goes(2)

    assert timer.stop() == 3


def test_waits_at_the_same_time_are_taken_off_once() -> None:
    clock = Clock()
    timer = CallTimer(clock)
    first, second = QueueWait(clock), QueueWait(clock)

    first.__enter__()
    clock.goes(1)
    second.__enter__()
    clock.goes(1)
    first.__exit__(None, None, None)
    clock.goes(1)
    second.__exit__(None, None, None)
    clock.goes(5)

    assert timer.stop() == 5


def test_timers_stopped_in_any_order_are_removed() -> None:
    def run() -> tuple[float, float, CallTimer | None]:
        clock = Clock()
        one = CallTimer(clock)
        other = CallTimer(clock)
        clock.goes(1)
        first = Context().run(one.stop)
        with QueueWait(clock):
            clock.goes(1)
        return first, other.stop(), CallTimer(clock).outer

    assert Context().run(run) == (1, 1, None)


async def hung() -> None:
    await asyncio.Event().wait()


def outcomes_of_two(breaker: Breaker, call: Callable[[float], object]) -> dict[str, int]:
    """Make two calls at once; the second waits 0.4 s for the first."""

    async def main() -> None:
        await asyncio.gather(call(0.4), call(10), return_exceptions=True)

    asyncio.run(main())
    return {name: count for name, count in breaker.counters.counted().items() if count}


@pytest.mark.parametrize(
    ("seconds", "outcomes"),
    [
        pytest.param(0.7, {"success": 1}, id="used up by the queue"),
        pytest.param(1.1, {"success": 1, "timeout": 1}, id="used up by the callee after a wait"),
    ],
)
def test_deadline_is_a_timeout_if_the_callee_used_it_up(
    seconds: float, outcomes: dict[str, int]
) -> None:
    breaker = Breaker("d")
    bulkhead = Bulkhead("d", ONE_AT_A_TIME)
    call = Deadline(seconds, cuts=False)(breaker(bulkhead(Timeout(None)(asyncio.sleep))))

    assert outcomes_of_two(breaker, call) == outcomes


def test_timeout_of_the_try_itself_is_one_also_after_a_longer_wait() -> None:
    breaker = Breaker("d")
    bulkhead = Bulkhead("d", ONE_AT_A_TIME)
    call = breaker(bulkhead(Timeout(0.05)(asyncio.sleep)))

    async def main() -> list[object]:
        async with bulkhead:
            waiting = asyncio.ensure_future(call(10))
            await asyncio.sleep(0.2)
        return await asyncio.gather(waiting, return_exceptions=True)

    (error,) = asyncio.run(main())

    assert isinstance(error, CallTimeout)
    assert breaker.counters.counted()["timeout"] == 1


def test_timeout_around_the_queue_is_no_timeout_of_a_callee_that_was_not_called() -> None:
    breaker = Breaker("d")
    bulkhead = Bulkhead("d", ONE_AT_A_TIME)
    call = breaker(Timeout(0.1)(bulkhead(awork)))

    async def main() -> list[object]:
        async with bulkhead:
            return await asyncio.gather(call(), return_exceptions=True)

    (error,) = asyncio.run(main())

    assert isinstance(error, BulkheadFull | CallTimeout)
    assert breaker.counters.counted()["timeout"] == 0
    assert breaker.look().calls == 0


def test_hung_callee_opens_the_breaker_though_later_calls_spend_their_deadline_in_the_queue() -> (
    None
):
    breaker = Breaker("d", BreakerParameters(failure_count=4))
    bulkhead = Bulkhead("d", BulkheadParameters(limit=2, queue=20, queue_seconds=10))
    call = Deadline(0.1, cuts=False)(breaker(bulkhead(Timeout(None)(hung))))

    async def caller() -> None:
        while breaker.state == "closed":
            await asyncio.gather(call(), return_exceptions=True)

    async def main() -> None:
        async with asyncio.timeout(10):
            await asyncio.gather(*(caller() for _ in range(8)))

    asyncio.run(main())

    assert breaker.state == "open"
    assert DeadlineExceeded.__name__ in str(breaker._last_failure)
