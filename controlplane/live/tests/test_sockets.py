"""Limits on sockets, and writing to one."""

import asyncio

import pytest

from controlplane.core.errors import TooManyRequests, Unavailable
from controlplane.core.live.subscribers import Subscriber
from controlplane.live import stream
from controlplane.live.sockets import Socket, Sockets


def socket(name: str = "token:1", topics: str = "switches") -> Socket:
    return Socket(Subscriber(name=name, topics=frozenset(topics.split())), "hello")


def collect_texts(one: Socket, *, until: int) -> list[str]:
    """Return the texts written until there are `until`, or slightly more."""

    async def run() -> list[str]:
        texts: list[str] = []

        async def send(text: str) -> None:
            texts.append(text)
            if len(texts) == until:
                one.end(1000, "enough")

        await asyncio.wait_for(one.write(send), 2)
        return texts

    return asyncio.run(run())


def test_person_may_have_so_many_sockets_and_others_theirs():
    sockets = Sockets(most_each=2)
    own = [socket("user:1"), socket("user:1")]
    for one in own:
        sockets.add(one)

    with pytest.raises(TooManyRequests):
        sockets.add(socket("user:1"))

    sockets.add(socket("token:1"))
    sockets.remove(own[0])
    sockets.add(socket("user:1"))
    assert len(sockets) == 3


def test_process_has_room_for_so_many():
    sockets = Sockets(most=1)
    sockets.add(socket("user:1"))

    with pytest.raises(Unavailable):
        sockets.add(socket("user:2"))


def test_leaving_twice_frees_one_place():
    sockets = Sockets(most_each=1)
    one, other = socket(), socket("token:2")
    sockets.add(one)
    sockets.add(other)

    sockets.remove(one)
    sockets.remove(one)

    assert len(sockets) == 1
    sockets.add(socket())
    with pytest.raises(TooManyRequests):
        sockets.add(socket())


def test_first_word_is_hello_and_other_topics_are_not_told():
    one = socket(topics="switches")

    one.send_changes("ramps", ["a ramp"])
    one.send_changes("switches", ["a switch"])

    assert collect_texts(one, until=2) == ["hello", "a switch"]


def test_nobody_listens_to_a_topic_that_all_have_narrowed_away():
    sockets, one = Sockets(), socket(topics="switches ramps")
    sockets.add(one)
    assert sockets.has_subscriber("ramps")

    one.topics = {"switches"}

    assert not sockets.has_subscriber("ramps")


def test_topic_that_is_listened_to_again_is_read_anew_and_others_go_on():
    one = socket(topics="ramps switches")
    one.subscribe({"switches"})
    one.send_changes("ramps", ["missed"])

    one.subscribe({"switches", "ramps"})
    one.send_changes("switches", ["a switch"])

    assert collect_texts(one, until=3) == ["hello", "a switch", stream.build_resync("ramps")]
    one.send_changes("ramps", ["a ramp"])
    assert one.mailbox.take_text() == "a ramp"


def test_narrowing_asks_for_nothing_anew():
    one = socket(topics="ramps switches")
    one.mailbox.take_text()

    one.subscribe({"switches"})

    assert one.mailbox.take_text() is None


def test_socket_that_nobody_reads_is_not_waited_for():
    async def run(sending: float) -> bool:
        sockets, one, other = Sockets(), socket("token:1"), socket("token:2")
        for each in (one, other):
            sockets.add(each)
        one.send_changes("switches", ["x"] * 300)
        writing = asyncio.create_task(one.write(lambda _text: asyncio.sleep(10)))
        await asyncio.sleep(sending)
        sockets.remove(other)
        writing.cancel()
        return sockets.are_backlogged("switches", 100)

    assert asyncio.run(run(sending=0.01))
    assert not asyncio.run(run(sending=0.6))


def test_one_of_three_is_not_waited_for_but_two_are():
    sockets, three = Sockets(), [socket(f"token:{n}") for n in range(3)]
    for each in three:
        sockets.add(each)

    three[0].send_changes("switches", ["x"] * 200)
    assert not sockets.are_backlogged("switches", 100)
    three[1].send_changes("switches", ["x"] * 200)
    assert sockets.are_backlogged("switches", 100)
    assert not sockets.are_backlogged("ramps", 100)


def test_first_reason_to_end_counts():
    one = socket()

    one.end(4401, "signed out")
    one.end(1012, "going away")

    assert one.ending == (4401, "signed out")


def test_socket_that_nobody_reads_is_given_up_and_one_that_is_read_is_not():
    async def run(now_ahead: float) -> bool:
        one = socket()

        async def serve() -> None:
            await one.write(lambda _text: asyncio.sleep(10))

        one.task = asyncio.create_task(serve())
        await asyncio.sleep(0.01)
        one.abandon_if_stuck(asyncio.get_running_loop().time() + now_ahead)
        await asyncio.sleep(0.01)
        was_cancelled = one.task.cancelled()
        one.task.cancel()
        return was_cancelled

    assert asyncio.run(run(now_ahead=21))
    assert not asyncio.run(run(now_ahead=5))
