"""The numbers of one process's stream, and the words that go out. Pure: no clock, no sockets."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import uuid4

import orjson

Text = str


def _new_id() -> str:
    return uuid4().hex


class Stream:
    """Numbers the messages of each topic consecutively within a stream's id.

    A new stream begins whenever messages may have been missed.
    """

    def __init__(self, topics: Iterable[str], new_id: Callable[[], str] = _new_id) -> None:
        self._new_id = new_id
        self._last = dict.fromkeys(topics, 0)
        self.id = new_id()

    def begin_anew(self) -> None:
        """Another id, and every topic from its beginning."""
        self.id = self._new_id()
        self._last = dict.fromkeys(self._last, 0)

    def hello(self, topics: Iterable[str], *, hears: bool) -> Text:
        """Return the first message to a socket, with the current number of each of its topics.

        `live` is False while this process receives no notifications.
        """
        numbers = {name: self._last[name] for name in sorted(topics)}
        return _text({"topic": "hello", "stream": self.id, "seq": numbers, "live": hears})

    def number(self, topic: str, event: str, at: str, data: Mapping[str, Any]) -> Text:
        """Return the next message of a topic; `at` is RFC 3339."""
        self._last[topic] += 1
        seq = self._last[topic]
        return _text({"topic": topic, "seq": seq, "event": event, "at": at, "data": data})


def resync(topic: str) -> Text:
    """Return the event that tells a client to reload the topic, because messages were dropped."""
    return _text({"topic": topic, "event": "resync"})


def heartbeat(at: str, *, hears: bool) -> Text:
    """Return a heartbeat; `live` as in the first message."""
    return _text({"topic": "heartbeat", "at": at, "live": hears})


def refusal(detail: str) -> Text:
    """Return the event for a rejected request of a client."""
    return _text({"topic": "error", "event": "error", "detail": detail})


def _text(document: Mapping[str, Any]) -> Text:
    return orjson.dumps(document).decode()
