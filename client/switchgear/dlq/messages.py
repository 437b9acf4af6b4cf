"""Messages of a stream as handlers get them, parsed from Redis' replies. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Pairs = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Message:
    """One message.

    `pairs` are its names and values as stored: bytes, in order, names possibly repeated.
    `deliveries` counts the workers that were given it, including this one; `attempt` counts the
    calls of the handler here, from 1.
    """

    stream: str
    group: str
    id: str
    pairs: Pairs
    deliveries: int = 1
    attempt: int = 1

    @cached_property
    def fields(self) -> dict[str, str]:
        r"""Names and values as text; invalid UTF-8 is written as `\\xff`.

        A repeated name has its last value.
        """
        return {to_text(name): to_text(value) for name, value in self.pairs}

    def value(self, name: str) -> bytes | None:
        """Return the first value of this name, in bytes."""
        wanted = name.encode()
        return next((value for each, value in self.pairs if each == wanted), None)


def to_text(value: bytes | str) -> str:
    """Return bytes as text, whatever they are."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def parse_read(stream: str, group: str, reply: Any) -> list[Message]:
    """Return the messages in a reply to XREADGROUP, in either protocol of Redis."""
    return [
        Message(stream, group, to_text(entry_id), pair_up(flat))
        for _, entries in _streams(reply)
        for entry_id, flat in entries
        if flat is not None
    ]


def parse_claimed(stream: str, group: str, reply: Any) -> tuple[list[Message], list[str]]:
    """Return the messages taken over, and the ids of those whose content is gone."""
    found, gone = reply
    messages = [
        Message(stream, group, to_text(entry_id), pair_up(flat), int(deliveries))
        for entry_id, flat, deliveries in found
    ]
    return messages, [to_text(entry_id) for entry_id in gone]


def _streams(reply: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(reply, Mapping):
        yield from reply.items()
    else:
        yield from reply or ()


def pair_up(flat: Sequence[bytes]) -> Pairs:
    """Return the pairs of names and values that alternate in `flat`."""
    return tuple(zip(flat[::2], flat[1::2], strict=True))
