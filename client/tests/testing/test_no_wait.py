"""`no_wait`: no pattern waits in the whole process within its block."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import redis.asyncio

from switchgear import (
    Bulkhead,
    BulkheadFull,
    BulkheadParameters,
    Deadline,
    Policy,
    Retry,
    RetryParameters,
    cancellation,
)
from switchgear.adapters.httpx import AsyncTransport, Transport
from switchgear.dlq import AsyncConsumer
from switchgear.patterns.deadline import left
from switchgear.testing import FakeClock, no_wait
from tests.dlq.consumers import consumer_of, failing
from tests.dlq.streams import GROUP, URL

SLOW = RetryParameters(attempts=4, base_seconds=600, cap_seconds=600)
"""A test that waits for it runs into its own timeout."""


class Failing:
    """A call that fails a few times, and counts its calls."""

    def __init__(self, times: int = 3) -> None:
        self.times = times
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise ConnectionError(f"number {self.calls}")
        return "fine"

    async def awaited(self) -> str:
        return self()


def test_retries_in_the_block_do_not_wait_and_are_counted():
    failing, states = Failing(), []

    with no_wait():
        assert Retry("a", SLOW, on_retry=states.append)(failing.__call__)() == "fine"

    assert failing.calls == 4
    assert len({state.wait_seconds for state in states}) == 3  # Drawn anew for each.


def test_retries_of_coroutines_do_not_wait_and_let_other_tasks_run():
    failing, calls = Failing(), []

    async def other():
        for _ in range(3):
            calls.append(failing.calls)
            await asyncio.sleep(0)

    async def main():
        task = asyncio.create_task(other())
        value = await Retry("a", SLOW)(failing.awaited)()
        await task
        return value

    with no_wait():
        assert asyncio.run(main()) == "fine"

    assert calls[1] > calls[0]


def test_attempts_of_a_policy_do_not_wait():
    policy, failing = Policy("a", retry=SLOW), Failing()

    with no_wait():
        for attempt in policy:
            with attempt:
                failing()

    assert failing.calls == 4


@pytest.mark.parametrize("retry_after", ["20", "29.5"])
def test_retry_after_of_a_response_is_not_waited_for(retry_after):
    answers = [httpx.Response(429, headers={"Retry-After": retry_after}), httpx.Response(200)]
    transport = httpx.MockTransport(lambda request: answers.pop(0))
    policy = Policy("a", retry=RetryParameters(attempts=2))

    with no_wait(), httpx.Client(transport=Transport(policy, transport)) as client:
        response = client.get("http://oracle.test/")

    assert response.status_code == 200
    assert answers == []


def test_retry_after_is_not_waited_for_in_a_coroutine():
    answers = [httpx.Response(503, headers={"Retry-After": "20"}), httpx.Response(200)]
    transport = httpx.MockTransport(lambda request: answers.pop(0))
    policy = Policy("a", retry=RetryParameters(attempts=2))

    async def main():
        async with httpx.AsyncClient(transport=AsyncTransport(policy, transport)) as client:
            return await client.get("http://oracle.test/")

    with no_wait():
        assert asyncio.run(main()).status_code == 200


def test_full_bulkhead_rejects_without_queueing():
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=600))

    with no_wait(), bulkhead, pytest.raises(BulkheadFull, match=r"within 600\.0 s"), bulkhead:
        pass

    assert bulkhead.look().in_flight == bulkhead.look().queued == 0


def test_full_bulkhead_refuses_a_coroutine_at_once():
    bulkhead = Bulkhead("a", BulkheadParameters(limit=1, queue=5, queue_seconds=600))

    async def main():
        async with bulkhead:
            with pytest.raises(BulkheadFull):
                await bulkhead.acquire_async()

    with no_wait():
        asyncio.run(main())


def test_deadline_is_not_used_up_by_waits_that_are_skipped():
    failing = Failing()
    seen = []

    @Deadline(3600)
    @Retry("a", SLOW)
    def ask():
        seen.append(left())
        return failing()

    with no_wait():
        ask()

    assert len(seen) == 4
    assert min(seen) > 3590


def test_consumer_does_not_wait_between_attempts(stream):
    consumer = consumer_of(stream, failing, attempts=6, backoff_seconds=60)
    stream.add(order="17")

    with no_wait():
        consumer.step()

    assert consumer.counts.failed_attempts == 6
    assert stream.letter[b"dlq_attempts"] == b"6"


def test_consumer_in_an_event_loop_does_not_wait_between_attempts(stream):
    async def handler(message):
        failing(message)

    async def main():
        async with redis.asyncio.Redis.from_url(URL) as client:
            consumer = AsyncConsumer(
                redis=client,
                handler=handler,
                stream=stream.name,
                group=GROUP,
                attempts=6,
                backoff_seconds=60,
            )
            await consumer.step()

    stream.add(order="17")
    with no_wait():
        asyncio.run(main())

    assert stream.letter[b"dlq_attempts"] == b"6"


def test_fake_clock_is_still_advanced():
    clock = FakeClock()
    retry = Retry("a", SLOW, clock=clock.monotonic, sleep=clock.sleep)

    with no_wait():
        retry(Failing(1).__call__)()

    assert clock.monotonic() > 0


def test_blocks_are_nested_and_the_outermost_ends_it():
    with no_wait():
        with no_wait():
            pass
        assert cancellation.is_waiting_skipped
    assert not cancellation.is_waiting_skipped


def test_block_that_fails_waits_again_after_it():
    with pytest.raises(ZeroDivisionError), no_wait():
        raise ZeroDivisionError

    assert not cancellation.is_waiting_skipped


def test_overlapping_blocks_of_threads_restore_waiting():
    both = threading.Barrier(8)

    def enter(_):
        both.wait()
        seen = []
        for _ in range(200):
            with no_wait():
                seen.append(cancellation.is_waiting_skipped)
        return all(seen)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(enter, range(8)))
    assert not cancellation.is_waiting_skipped


@no_wait()
def test_decorated_test_does_not_wait(tmp_path):
    assert tmp_path.is_dir()  # Fixtures are still found by the names of the arguments.
    assert Retry("a", SLOW)(Failing().__call__)() == "fine"


@pytest.fixture(name="waitless")
def _waitless():
    with no_wait():
        yield


@pytest.fixture(name="waitless_too")
@no_wait()
def _waitless_too():
    yield
    assert cancellation.is_waiting_skipped  # Not before the test that uses it is over.


@pytest.mark.usefixtures("waitless")
def test_fixture_with_the_block_in_it_skips_waits():
    assert Retry("a", SLOW)(Failing().__call__)() == "fine"


def test_decorated_fixture_skips_waits_until_its_test_is_over(waitless_too):
    assert Retry("a", SLOW)(Failing().__call__)() == "fine"


def test_waits_are_real_outside_of_blocks():
    states = []
    began = time.monotonic()

    Retry("a", on_retry=states.append)(Failing(1).__call__)()

    assert time.monotonic() - began >= states[0].wait_seconds > 0
