"""How many sockets there may be, and how one is written to."""

import asyncio

import pytest

from controlplane.core.errors import TooManyRequests, Unavailable
from controlplane.core.live.sockets import Socket, Sockets
from controlplane.core.live.visitors import Visitor


def socket(name: str = "token:1", topics: str = "switches") -> Socket:
    return Socket(Visitor(name=name, topics=frozenset(topics.split())), "hello")


def written(one: Socket, *, until: int) -> list[str]:
    """What is written until so many texts were, or a little later."""

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
    mine = [socket("user:1"), socket("user:1")]
    for one in mine:
        sockets.enter(one)

    with pytest.raises(TooManyRequests):
        sockets.enter(socket("user:1"))

    sockets.enter(socket("token:1"))
    sockets.leave(mine[0])
    sockets.enter(socket("user:1"))
    assert len(sockets) == 3


def test_process_has_room_for_so_many():
    sockets = Sockets(most=1)
    sockets.enter(socket("user:1"))

    with pytest.raises(Unavailable):
        sockets.enter(socket("user:2"))


def test_leaving_twice_frees_one_place():
    sockets = Sockets(most_each=1)
    one, other = socket(), socket("token:2")
    sockets.enter(one)
    sockets.enter(other)

    sockets.leave(one)
    sockets.leave(one)

    assert len(sockets) == 1
    sockets.enter(socket())
    with pytest.raises(TooManyRequests):
        sockets.enter(socket())


def test_first_word_is_hello_and_other_topics_are_not_told():
    one = socket(topics="switches")

    one.tell("ramps", "a ramp")
    one.tell("switches", "a switch")

    assert written(one, until=2) == ["hello", "a switch"]


def test_nobody_listens_to_a_topic_that_all_have_narrowed_away():
    sockets, one = Sockets(), socket(topics="switches ramps")
    sockets.enter(one)
    assert sockets.listen_to("ramps")

    one.topics = {"switches"}

    assert not sockets.listen_to("ramps")


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
        one.give_up(asyncio.get_running_loop().time() + now_ahead)
        await asyncio.sleep(0.01)
        was_cancelled = one.task.cancelled()
        one.task.cancel()
        return was_cancelled

    assert asyncio.run(run(now_ahead=21))
    assert not asyncio.run(run(now_ahead=5))
