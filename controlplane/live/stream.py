"""Encoding and numbering of the messages that sockets receive. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import uuid4

import orjson


class EventStream:
    """Numbers the messages that are sent to clients, per topic, so that clients notice gaps.

    A new stream, with a new id, starts whenever messages may have been missed.
    """

    def __init__(
        self, topics: Iterable[str], new_id: Callable[[], str] = lambda: uuid4().hex
    ) -> None:
        self._new_id = new_id
        self._last = dict.fromkeys(topics, 0)
        self.id = new_id()

    def restart(self) -> None:
        """Start a new stream: a new id, and all topics numbered from 1 again."""
        self.id = self._new_id()
        self._last = dict.fromkeys(self._last, 0)

    def hello(self, topics: Iterable[str], *, is_subscribed: bool) -> str:
        """Return a socket's first message: the stream's id, and the last number of each topic.

        Its field `live` is False while this process gets no changes from Redis.
        """
        numbers = {name: self._last[name] for name in sorted(topics)}
        return _encode({"topic": "hello", "stream": self.id, "seq": numbers, "live": is_subscribed})

    def number_event(self, topic: str, event: str, at: str, data: Mapping[str, Any]) -> str:
        """Return a message of a topic, encoded and with the next number; `at` is RFC 3339."""
        self._last[topic] += 1
        seq = self._last[topic]
        return _encode({"topic": topic, "seq": seq, "event": event, "at": at, "data": data})


def build_resync(topic: str) -> str:
    """Return the message that tells a client to reload a topic, after messages were dropped."""
    return _encode({"topic": topic, "event": "resync"})


def build_heartbeat(at: str, *, is_subscribed: bool) -> str:
    """Return a heartbeat; its field `live` is False while no changes come from Redis."""
    return _encode({"topic": "heartbeat", "at": at, "live": is_subscribed})


def build_refusal(detail: str) -> str:
    """Return the message that tells a client why its own message was rejected."""
    return _encode({"topic": "error", "event": "error", "detail": detail})


def _encode(document: Mapping[str, Any]) -> str:
    return orjson.dumps(document).decode()
