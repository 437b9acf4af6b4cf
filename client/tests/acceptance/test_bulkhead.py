"""Calls that a bulkhead admits, queues and rejects."""

import asyncio
import contextlib
import threading
import time

import pytest

from switchgear import Breaker, Bulkhead, BulkheadFull, BulkheadParameters
from tests.acceptance.callee import Callee

PATIENCE_SECONDS = 10.0
LONG_SECONDS = 500.0


def sized(limit, queue=0, queue_seconds=0.0):
    return BulkheadParameters(limit=limit, queue=queue, queue_seconds=queue_seconds)


def waiting(bulkhead, then):
    """A thread that waits in the queue of `bulkhead`, and calls `then` with a permit."""

    def run():
        with bulkhead:
            then()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_until(lambda: bulkhead.look().queued == 1)
    return thread


def wait_until(condition):
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_permits_are_taken_given_back_and_taken_again():
    """resilience4j: SemaphoreBulkheadTest.testBulkhead
    resilience4j: BulkheadTest.shouldReturnFailureWithBulkheadFullException
    """
    bulkhead = Bulkhead("callee", sized(2))

    with contextlib.ExitStack() as stack:
        stack.enter_context(bulkhead)
        stack.enter_context(bulkhead)
        with pytest.raises(BulkheadFull) as refused, bulkhead:
            pytest.fail("there was no permit")
        full = bulkhead.look()
    with bulkhead:
        again = bulkhead.look()

    assert refused.value.name == "callee"
    assert (full.in_flight, full.rejected) == (2, 1)
    assert (again.in_flight, again.rejected) == (1, 1)


def generator(callee):
    def items():
        yield callee()

    return items


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(
            lambda bulkhead, callee: bulkhead(callee)(),
            id="shouldDecorateSupplierAndReturnWithException",
        ),
        pytest.param(
            lambda bulkhead, callee: asyncio.run(bulkhead(callee.later)()),
            id="of a coroutine function",
        ),
        pytest.param(
            lambda bulkhead, callee: list(bulkhead(generator(callee))()), id="of a generator"
        ),
    ],
)
def test_call_that_fails_gives_its_permit_back(ask):
    """resilience4j: BulkheadTest, by id
    Finagle: RequestSemaphoreFilterTest "service failures are not wrapped as rejected"
    """
    error = RuntimeError("BAM!")
    bulkhead = Bulkhead("callee", sized(1))

    for _ in range(3):
        with pytest.raises(RuntimeError) as raised:
            ask(bulkhead, Callee(error))
        assert raised.value is error

    assert (bulkhead.look().in_flight, bulkhead.look().rejected) == (0, 0)


def test_call_that_finds_no_permit_in_time_is_turned_away():
    """resilience4j: SemaphoreBulkheadTest.testTryEnterWithTimeout
    resilience4j: SemaphoreBulkheadTest.testEntryTimeout
    """
    bulkhead, callee = Bulkhead("callee", sized(1, queue=1, queue_seconds=0.03)), Callee("fine")

    with bulkhead:
        began = time.monotonic()
        with pytest.raises(BulkheadFull):
            bulkhead(callee)()
        took = time.monotonic() - began

    assert took >= 0.029
    assert callee.calls == []
    assert bulkhead.look().queued == 0


def test_task_cancelled_in_the_queue_leaves_it_and_takes_no_permit():
    """resilience4j: SemaphoreBulkheadTest.testAcquireWithInterruptDuringTimeout"""
    bulkhead, callee = Bulkhead("callee", sized(1, 1, LONG_SECONDS)), Callee("fine")

    async def main():
        async with bulkhead:
            task = asyncio.create_task(bulkhead(callee.later)())
            await turns(lambda: bulkhead.look().queued == 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            left_behind = bulkhead.look()
        return task.cancelled(), left_behind

    was_cancelled, left_behind = asyncio.run(main())

    assert was_cancelled
    assert (left_behind.in_flight, left_behind.queued) == (1, 0)
    assert bulkhead.look().in_flight == 0
    assert callee.calls == []


def test_limit_of_nothing_is_refused():
    """resilience4j: SemaphoreBulkheadTest.testZeroMaxConcurrentCalls

    Differs: what must let nobody through is a switch or a forced breaker, which say why.
    """
    with pytest.raises(ValueError, match="limit"):
        sized(0)


def test_limit_is_changed_while_nobody_is_in():
    """resilience4j: SemaphoreBulkheadTest.changePermissionsInIdleState"""
    bulkhead, admitted = Bulkhead("callee", sized(3)), []

    for limit in (5, 2, 2):
        bulkhead.configure(sized(limit))
        with contextlib.ExitStack() as stack, contextlib.suppress(BulkheadFull):
            while True:
                stack.enter_context(bulkhead)
                in_flight = bulkhead.look().in_flight
        admitted.append(in_flight)

    assert admitted == [5, 2, 2]


def test_limit_that_shrinks_takes_no_permit_away_and_waits_for_nobody():
    """resilience4j: SemaphoreBulkheadTest.changePermissionsCountWhileOneThreadIsRunningWithThisPermission

    Differs in that the change does not block until the permits are back: it holds at once for those
    who come.
    """
    bulkhead = Bulkhead("callee", sized(2))

    with bulkhead:
        with bulkhead:
            bulkhead.configure(sized(1))
            shrunk = bulkhead.look()
        with pytest.raises(BulkheadFull), bulkhead:
            pytest.fail("there was no permit")
    with bulkhead:
        after = bulkhead.look()

    assert (shrunk.in_flight, shrunk.limit) == (2, 1)
    assert (after.in_flight, after.limit) == (1, 1)


def test_limit_that_grows_lets_in_who_waits():
    """resilience4j: SemaphoreBulkheadTest.changePermissionsCountWhileOneThreadIsWaitingForPermission"""
    bulkhead, let_in = Bulkhead("callee", sized(1, 1, LONG_SECONDS)), threading.Event()

    with bulkhead:
        thread = waiting(bulkhead, let_in.set)
        bulkhead.configure(sized(2, 1, LONG_SECONDS))
        thread.join(PATIENCE_SECONDS)
        assert let_in.is_set()

    assert bulkhead.look().in_flight == 0


def test_shorter_wait_is_for_those_who_come_later():
    """resilience4j: SemaphoreBulkheadTest.changeWaitingTimeWhileOneThreadIsWaitingForPermission"""
    bulkhead, let_in = Bulkhead("callee", sized(1, 2, LONG_SECONDS)), threading.Event()

    with bulkhead:
        thread = waiting(bulkhead, let_in.set)
        bulkhead.configure(sized(1, 2, 0))
        with pytest.raises(BulkheadFull), bulkhead:
            pytest.fail("there was no permit")
        assert bulkhead.look().queued == 1
    thread.join(PATIENCE_SECONDS)

    assert let_in.is_set()


def test_call_beyond_the_limit_is_turned_away_and_says_nothing_of_the_callee():
    """Finagle: PendingRequestFilterTest "it rejects excessive requests with restartable failures"
    Finagle: PendingRequestFilterTest "it increments the rejected stat"
    Finagle: RequestSemaphoreFilterTest "mark dropped requests as rejected"
    """
    bulkhead, breaker = Bulkhead("callee", sized(3)), Breaker("callee")
    call = breaker(bulkhead(Callee("fine")))

    with bulkhead, bulkhead:
        with bulkhead:
            for _ in range(2):
                with pytest.raises(BulkheadFull):
                    call()
        result = call()

    assert result == "fine"
    assert bulkhead.look().rejected == 2
    assert breaker.look().calls == 1


async def turns(condition):
    """Let the other tasks run until it is so."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("it never came so far")


class Load:
    """Many calls at once of one bulkhead, each of which ends when it is told to."""

    def __init__(self, bulkhead, total):
        self._bulkhead = bulkhead
        self._ends = [asyncio.Event() for _ in range(total)]
        self.begun = []
        self.tasks = [asyncio.create_task(self._call(n)) for n in range(total)]

    async def _call(self, n):
        async with self._bulkhead:
            self.begun.append(n)
            await self._ends[n].wait()

    def running(self):
        return [n for n in self.begun if not self.tasks[n].done()]

    def queued(self):
        return [n for n, task in enumerate(self.tasks) if not task.done() and n not in self.begun]

    def rejected(self):
        return sum(
            task.done() and not task.cancelled() and isinstance(task.exception(), BulkheadFull)
            for task in self.tasks
        )

    def complete(self):
        self._ends[self.running()[0]].set()

    def cancel(self, numbers):
        self.tasks[numbers[0]].cancel()

    async def settled(self, running, queued, rejected):
        """Raise `AssertionError` unless it comes to that, in the bulkhead's own figures too."""
        expected = (running, queued, rejected)
        await turns(lambda: (len(self.running()), len(self.queued()), self.rejected()) == expected)
        status = self._bulkhead.look()
        assert (status.in_flight, status.queued, status.rejected) == expected


@pytest.mark.parametrize(
    ("limit", "queue", "total", "cancels_queued", "cancels_running"),
    [
        (5, 0, 3, False, False),
        (20, 0, 3, False, True),
        (3, 0, 4, False, False),
        (3, 1, 5, False, False),
        (6, 3, 9, True, True),
        (5, 3, 8, False, False),
        (1, 6, 5, True, True),
    ],
)
def test_load_is_spread_over_permits_queue_and_rejections(
    limit, queue, total, cancels_queued, cancels_running
):
    """Polly: BulkheadSpecsBase.Should_control_executions_per_specification, with BulkheadScenarios"""

    async def main():
        load = Load(Bulkhead("callee", sized(limit, queue, LONG_SECONDS)), total)
        running = min(total, limit)
        queued = min(queue, total - running)
        rejected = total - running - queued
        await load.settled(running, queued, rejected)
        if cancels_queued:
            load.cancel(load.queued())
            queued -= 1
            await load.settled(running, queued, rejected)
        end_one = [lambda: load.cancel(load.running())] if cancels_running else []
        while running:
            (end_one.pop() if end_one else load.complete)()
            running, queued = (running, queued - 1) if queued else (running - 1, 0)
            await load.settled(running, queued, rejected)
        assert all(task.done() for task in load.tasks)

    asyncio.run(main())
