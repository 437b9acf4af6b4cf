"""A burst in one topic: clients that keep up receive all of it, and no other topic waits."""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

import orjson
import pytest

from controlplane.core.live.subscribers import Subscriber
from controlplane.core.live.topics import Topic
from controlplane.live.query_threads import QueryPool
from controlplane.live.sockets import Socket, Sockets
from controlplane.live.stream import EventStream
from controlplane.live.topic_publisher import TEXTS_AT_ONCE, TopicPublisher

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "switches"


def read(ids: Sequence[str], _now: datetime) -> dict[str, dict[str, Any]]:
    return {each: {"id": each} for each in ids}


class House:
    """A lane and so many sockets, without a server around them."""

    def __init__(self, count: int) -> None:
        self.stream, self.sockets, self.query_pool = EventStream([NAME]), Sockets(), QueryPool()
        topic = Topic(NAME, frozenset(), "switch.changed", read)
        self.publisher = TopicPublisher(
            topic, self.stream, self.sockets, self.query_pool, lambda: True
        )
        self.all = [Socket(Subscriber(f"token:{n}", frozenset({NAME})), "") for n in range(count)]
        for each in self.all:
            each.mailbox.take_text()
            self.sockets.add(each)

    def count_waiting(self) -> int:
        """Number of texts waiting in all mailboxes together."""
        return sum(256 - each.mailbox.room for each in self.all)

    async def during(self, *others: Coroutine[Any, Any, Any], until: Coroutine[Any, Any, Any]):
        work = [asyncio.create_task(each) for each in (self.publisher.run(), *others)]
        try:
            await asyncio.wait_for(until, 10)
        finally:
            for each in work:
                each.cancel()
            self.query_pool.close()


def names(count: int) -> list[str]:
    return [f"segment:{n}" for n in range(count)]


def test_burst_of_a_thousand_reaches_sockets_that_read_without_a_gap():
    received: list[list[dict[str, Any]]] = [[], []]

    async def run() -> None:
        house = House(2)

        async def all_seen() -> None:
            while any(len(each) < 1_000 for each in received):
                await asyncio.sleep(0.01)

        def reader(number: int):
            async def send(text: str) -> None:
                received[number].append(orjson.loads(text))
                await asyncio.sleep(0)

            return house.all[number].write(send)

        house.publisher.note(names(1_000))
        await house.during(reader(0), reader(1), until=all_seen())

    asyncio.run(run())

    for each in received:
        assert [message.get("seq") for message in each] == list(range(1, 1_001))
        assert {message["data"]["id"] for message in each} == set(names(1_000))


def test_others_have_their_turn_while_a_crowd_is_told():
    grown: list[int] = []

    async def run() -> None:
        house = House(200)

        async def look() -> None:
            before = 0
            while (now := house.count_waiting()) < 200 * 100:
                grown.append(now - before)
                before = now
                await asyncio.sleep(0)

        house.publisher.note(names(100))
        await house.during(until=look())

    asyncio.run(run())

    assert 0 < max(grown) <= 2 * TEXTS_AT_ONCE


def test_nobody_is_told_of_a_stream_that_has_ended_meanwhile():
    left: list[list[str]] = []

    async def run() -> None:
        house = House(200)

        async def begin_anew_in_the_middle() -> None:
            while not house.count_waiting():
                await asyncio.sleep(0)
            house.stream.restart()
            for each in house.all:
                each.restart("hello")
            await asyncio.sleep(0.1)
            left.extend(list(iter(each.mailbox.take_text, None)) for each in house.all)

        house.publisher.note(names(100))
        await house.during(until=begin_anew_in_the_middle())

    asyncio.run(run())

    assert left == [["hello"]] * 200


def test_socket_that_comes_meanwhile_is_greeted_with_the_numbers_it_is_not_told():
    async def run() -> tuple[Any, int]:
        house = House(200)
        late = Socket(Subscriber("token:late", frozenset({NAME})), "")
        late.mailbox.take_text()

        async def enter_in_the_middle() -> Any:
            while not house.count_waiting():
                await asyncio.sleep(0)
            assert house.count_waiting() < 200 * 100
            hello = orjson.loads(house.stream.hello([NAME], is_subscribed=True))
            house.sockets.add(late)
            while house.count_waiting() < 200 * 100:
                await asyncio.sleep(0)
            received.append(hello["seq"])

        received: list[Any] = []
        house.publisher.note(names(100))
        await house.during(until=enter_in_the_middle())
        return received[0], late.mailbox.room

    assert asyncio.run(run()) == ({NAME: 100}, 256)
