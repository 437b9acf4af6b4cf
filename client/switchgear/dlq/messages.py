"""A message of a stream as a handler gets it, and Redis' answers made into messages. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Pairs = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Message:
    """One message. `pairs` are its names and values as they lie in Redis: bytes, in order, a name
    perhaps twice. `deliveries` counts the workers that were given it, this one included; `attempt`
    the calls of the handler here, from 1. Both are the same whatever the client decodes.
    """

    stream: str
    group: str
    id: str
    pairs: Pairs
    deliveries: int = 1
    attempt: int = 1

    @cached_property
    def fields(self) -> dict[str, str]:
        """Names and values as text; bytes that are no UTF-8 are written as `\\xff`. The last value
        of a name that comes twice."""
        return {text(name): text(value) for name, value in self.pairs}

    def value(self, name: str) -> bytes | None:
        """The first value of this name, as it is."""
        wanted = name.encode()
        return next((value for each, value in self.pairs if each == wanted), None)


def text(value: bytes | str) -> str:
    """Whatever the bytes are, as text."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def read(stream: str, group: str, reply: Any) -> list[Message]:
    """The messages in an answer to XREADGROUP, by the old protocol of Redis or the new one."""
    return [
        Message(stream, group, text(entry_id), paired(flat))
        for _, entries in _streams(reply)
        for entry_id, flat in entries
        if flat is not None
    ]


def claimed(stream: str, group: str, reply: Any) -> tuple[list[Message], list[str]]:
    """The messages that were taken over, and the ids of those whose content was gone."""
    found, gone = reply
    messages = [
        Message(stream, group, text(entry_id), paired(flat), int(deliveries))
        for entry_id, flat, deliveries in found
    ]
    return messages, [text(entry_id) for entry_id in gone]


def _streams(reply: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(reply, Mapping):
        yield from reply.items()
    else:
        yield from reply or ()


def paired(flat: Sequence[bytes]) -> Pairs:
    """Names and values that came in turns."""
    return tuple(zip(flat[::2], flat[1::2], strict=True))
