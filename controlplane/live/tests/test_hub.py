"""Messages of a process's hub to its sockets, without a server."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from controlplane.core.errors import Unauthenticated, Unavailable
from controlplane.core.live.subscribers import Session, Subscriber
from controlplane.core.protocol import MISSED_NOTE
from controlplane.live.hub import Hub

TOPICS = frozenset({"degradation", "slo"})


class Around:
    """A process in which all is well."""

    def database_reachable(self) -> bool:
        return True

    def wall(self) -> datetime:
        return datetime(2026, 11, 21, 2, 0, tzinfo=UTC)

    def degradation(self, *, is_subscribed: bool) -> Mapping[str, Any]:
        return {"level": 0 if is_subscribed else 2}

    def authenticate_token(self, headers: Mapping[bytes, bytes]) -> Subscriber:
        return Subscriber(name="token:1", topics=TOPICS, headers=headers)

    def is_token_valid(self, subscriber: Subscriber) -> bool:
        return True

    def find_session(self, key: str) -> Subscriber:
        raise Unauthenticated("There are no sessions here.")

    def find_ended_sessions(self, sessions: Collection[Session]) -> set[Session]:
        return set()


def entered(hub: Hub):
    return hub.add(hub.process.authenticate_token({}))


def waiting(socket) -> list[dict[str, Any]]:
    return [orjson.loads(text) for text in iter(socket.mailbox.take_text, None)]


@pytest.mark.services
def test_socket_without_degradation_is_told_that_notes_are_missed():
    async def run() -> list[dict[str, Any]]:
        hub = Hub(Around())
        socket = entered(hub)
        socket.subscribe({"slo"})
        hub.start("redis://127.0.0.1:1/0")
        await asyncio.sleep(0.5)
        await hub.stop()
        return waiting(socket)

    _, message = asyncio.run(run())

    assert message == {"topic": "heartbeat", "at": "2026-11-21T02:00:00.000000Z", "live": False}


def test_publisher_that_missed_a_note_has_everybody_begin_anew():
    hub = Hub(Around())
    socket = entered(hub)
    (first,) = waiting(socket)

    hub.handle_notice(MISSED_NOTE)

    (second,) = waiting(socket)
    assert second["topic"] == "hello"
    assert second["stream"] != first["stream"]


def test_new_stream_says_where_those_topics_stand_that_were_narrowed_to():
    hub = Hub(Around())
    socket = entered(hub)
    waiting(socket)
    socket.topics = {"slo"}

    hub.handle_notice(MISSED_NOTE)

    assert waiting(socket)[0]["seq"] == {"slo": 0}


@pytest.mark.parametrize("text", [b"", b"{", b'{"topic":"nothing","ids":["x"]}'])
def test_what_is_no_note_changes_nothing(text):
    hub = Hub(Around())
    socket = entered(hub)
    waiting(socket)

    hub.handle_notice(text)

    assert waiting(socket) == []


def test_closing_hub_ends_its_sockets_and_takes_no_more():
    hub = Hub(Around())
    socket = entered(hub)

    hub.close()

    assert socket.ending is not None
    assert socket.ending[0] == 1012
    with pytest.raises(Unavailable):
        entered(hub)


@pytest.mark.services
def test_redis_that_can_not_be_reached_is_told_as_degradation():
    async def run() -> list[dict[str, Any]]:
        hub = Hub(Around())
        socket = entered(hub)
        hub.start("redis://127.0.0.1:1/0")
        await asyncio.sleep(1)
        await hub.stop()
        return waiting(socket)

    hello, heartbeat, message = asyncio.run(run())

    assert hello["live"] is False
    assert heartbeat["live"] is False
    assert (message["topic"], message["seq"], message["data"]) == ("degradation", 1, {"level": 2})
