"""Parser of server-sent events, as an upstream sends them. Pure."""

from typing import NamedTuple

MAX_EVENT_BYTES = 256 * 1024 * 1024
_END = b"\n\n"


class Event(NamedTuple):
    """An event's name and data; comments and other fields are left out."""

    name: str
    data: bytes


class EventTooLarge(ValueError):
    """An event that is larger than allowed."""


class EventParser:
    """Splits a stream of bytes into events."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._buffer = bytearray()
        self._searched = 0
        """Number of bytes of the buffer that are known to hold no end of an event."""
        self._max_bytes = max_bytes

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that `chunk` completes; raise :class:`EventTooLarge`."""
        self._buffer += chunk
        events = []
        while (end := self._buffer.find(_END, self._searched)) >= 0:
            event = _parse(bytes(self._buffer[:end]))
            del self._buffer[: end + len(_END)]
            self._searched = 0
            if event.name:
                events.append(event)
        self._searched = max(0, len(self._buffer) - 1)
        if len(self._buffer) > self._max_bytes:
            raise EventTooLarge(f"an event is larger than {self._max_bytes:,} bytes")
        return events


def _parse(text: bytes) -> Event:
    name, data = "", []
    for line in text.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"event":
            name = value.strip().decode("utf-8", "replace")
        elif field == b"data":
            data.append(value.removeprefix(b" "))
    return Event(name, b"\n".join(data))
