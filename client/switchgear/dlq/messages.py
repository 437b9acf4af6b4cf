"""Messages of a stream, parsed from the replies of Redis. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Pairs = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Message:
    """A message as the handler receives it.

    `pairs` are its field names and values in bytes; names may repeat. `deliveries` counts the
    workers that received the message, including this one; `attempt` counts the handler calls of
    this worker, from 1.
    """

    stream: str
    group: str
    id: str
    pairs: Pairs
    deliveries: int = 1
    attempt: int = 1

    @cached_property
    def fields(self) -> dict[str, str]:
        r"""Fields as text, with invalid UTF-8 as `\\xff`; a repeated name has its last value."""
        return {to_text(name): to_text(value) for name, value in self.pairs}

    def value(self, name: str) -> bytes | None:
        """Return the first value of this name in bytes, or None."""
        encoded = name.encode()
        return next((value for each, value in self.pairs if each == encoded), None)


def to_text(value: bytes | str) -> str:
    """Return bytes as text, with invalid UTF-8 escaped."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def parse_read(stream: str, group: str, reply: Any) -> list[Message]:
    """Return the messages in a reply to XREADGROUP, in either protocol of Redis."""
    streams = reply.items() if isinstance(reply, Mapping) else reply or ()
    return [
        Message(stream, group, to_text(entry_id), pair_up(flat))
        for _, entries in streams
        for entry_id, flat in entries
        if flat is not None
    ]


def parse_claimed(stream: str, group: str, reply: Any) -> tuple[list[Message], list[str]]:
    """Return the claimed messages, and the ids of messages whose content was deleted."""
    claimed, gone = reply
    messages = [
        Message(stream, group, to_text(entry_id), pair_up(flat), int(deliveries))
        for entry_id, flat, deliveries in claimed
    ]
    return messages, [to_text(entry_id) for entry_id in gone]


def pair_up(flat: Sequence[bytes]) -> Pairs:
    """Return the pairs of names and values that alternate in `flat`."""
    return tuple(zip(flat[::2], flat[1::2], strict=True))
