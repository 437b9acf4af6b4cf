"""The consumer for asyncio comes to an end with every message as the other one does."""

import asyncio

import pytest
import redis.asyncio

from switchgear.dlq import AsyncConsumer
from switchgear.testing import Console
from tests.dlq.streams import GROUP, URL


def run(stream, work, **options):
    """`work` with a function that makes consumers on one client."""

    async def main():
        async with redis.asyncio.Redis.from_url(URL, **options) as client:

            def consumer_of(handler, **terms):
                arguments = {"consumer": "w1", "backoff_seconds": 0, "wait_seconds": 0.05, **terms}
                return AsyncConsumer(
                    redis=client, handler=handler, stream=stream.name, group=GROUP, **arguments
                )

            return await work(consumer_of)

    return asyncio.run(main())


async def failing(message):
    raise ValueError("no such order")


@pytest.mark.parametrize("options", [{}, {"decode_responses": True}, {"protocol": 2}])
def test_messages_are_handled_or_dead_letters(stream, options):
    messages = []
    stream.redis.execute_command("XADD", stream.name, "*", "n", b"\xff", "n", "1")
    stream.add(n=2)

    async def handler(message):
        messages.append((message.pairs, message.attempt))
        if message.value("n") == b"2":
            await failing(message)

    async def work(consumer_of):
        consumer = consumer_of(handler)
        await consumer.step()
        return consumer.counts

    counts = run(stream, work, **options)

    assert messages[0] == (((b"n", b"\xff"), (b"n", b"1")), 1)
    assert [attempt for _, attempt in messages] == [1, 1, 2, 3]
    assert (counts.handled, counts.dead_lettered, stream.pending) == (1, 1, [])
    assert stream.letter[b"dlq_attempts"] == b"3"


def test_what_was_left_behind_is_taken_over_and_given_up_after_three_workers(stream):
    messages = []
    stream.add(n=1)
    stream.add(n=2)
    first, second = stream.given_to("dead", count=2)
    stream.idle(first, "dead", deliveries=1)
    stream.idle(second, "dead", deliveries=3)

    async def handler(message):
        messages.append((message.id, message.deliveries))

    async def work(consumer_of):
        consumer = consumer_of(handler)
        for _ in range(3):
            await consumer.step()

    run(stream, work)

    assert messages == [(first, 2)]
    assert stream.letter[b"dlq_error_type"] == b"switchgear.dlq.WorkersDied"
    assert stream.pending == []


def test_a_cancelled_task_frees_its_messages_at_once(stream):
    messages = []
    ids = [stream.add(), stream.add()]

    async def work(consumer_of):
        begun = asyncio.Event()

        async def hanging(message):
            begun.set()
            await asyncio.sleep(3600)

        async def handler(message):
            messages.append((message.id, message.deliveries))

        task = asyncio.create_task(consumer_of(hanging).run())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        other = consumer_of(handler, consumer="w2")
        for _ in range(3):
            await other.step()

    run(stream, work)

    assert messages == [(one, 1) for one in ids]
    assert stream.pending == []


def test_what_takes_longer_than_the_idle_time_is_not_taken_over(stream):
    messages = []
    stream.add()

    async def other(message):
        messages.append("other")

    async def work(consumer_of):
        begun = asyncio.Event()

        async def slow(message):
            begun.set()
            await asyncio.sleep(1.4)
            messages.append("slow")

        task = asyncio.create_task(consumer_of(slow, idle_seconds=0.6).step())
        await begun.wait()
        second = consumer_of(other, consumer="w2", idle_seconds=0.6)
        while not task.done():
            await second.step()
            await asyncio.sleep(0.05)

    run(stream, work)

    assert messages == ["slow"]
    assert stream.pending == []


def test_a_stop_ends_the_run_and_leaves_the_group(stream):
    stream.add()

    async def work(consumer_of):
        async def handler(message):
            consumer.stop()

        consumer = consumer_of(handler)
        await asyncio.wait_for(consumer.run(), 10)

    run(stream, work)

    assert stream.redis.xinfo_consumers(stream.name, GROUP) == []
    assert stream.pending == []


def test_refused_handler_keeps_the_message_until_it_may_run(stream):
    console = Console()
    console.engage("feature:orders")
    guard = console.client().guard(feature="orders")
    messages = []
    stream.add(order="17")

    @guard
    async def handler(message):
        messages.append(message.attempt)

    async def work(consumer_of):
        consumer = consumer_of(handler, refused_seconds=0.02)
        running = asyncio.create_task(consumer.run())
        while consumer.counts.refused < 5:
            await asyncio.sleep(0.01)
        before = list(messages)
        console.release("feature:orders")
        while not consumer.counts.handled:
            await asyncio.sleep(0.01)
        consumer.stop()
        await running
        return before

    before = run(stream, work)

    assert (before, messages) == ([], [1])
    assert (stream.letters, stream.pending) == ([], [])
