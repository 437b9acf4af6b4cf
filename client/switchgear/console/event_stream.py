"""An incremental parser of server-sent events (WHATWG HTML standard), with bounded memory. Pure.

The field `signature`, which the standard ignores, belongs to the event.
"""

import re
from dataclasses import dataclass

from switchgear.evaluation.snapshot import MAX_SERVED_BYTES

MAX_EVENT_BYTES = MAX_SERVED_BYTES + 2**16
LINE_OVERHEAD_BYTES = 50
"""Bytes added for each line to the measured size of an event."""
MAX_RETRY_AFTER_DIGITS = 9
MAX_SIGNATURE_BYTES = 2000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_LINE_END = re.compile(rb"\r\n|\r|\n")


class EventTooLarge(ValueError):
    """Raised if an event exceeds the limit of bytes before its end."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    name: str
    data: bytes
    signature: str = ""


class EventStreamParser:
    """A parser that receives pieces of a stream and returns complete events.

    `retry_seconds` is the server's latest reconnection delay, None if it gave none.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self.retry_seconds: float | None = None
        self.idle_bytes = 0
        """Bytes outside of events (comments, `retry`, unknown fields); callers may reset it."""
        self._max_bytes = max_bytes
        self._size_bytes = 0
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = self._signature = b""
        self._begun = False
        self._after_return = False

    @property
    def is_within(self) -> bool:
        """True between the beginning and the end of an event."""
        return self._size_bytes > 0

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Return the events that end in `piece`. Raise :class:`EventTooLarge`."""
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_return = False
        if not piece:
            return []
        self._after_return = piece.endswith(b"\r")
        *ended, rest = _LINE_END.split(piece)
        events = []
        for end in ended:
            self._line.append(end)
            line = b"".join(self._line)
            self._line.clear()
            event = self._parse_line(line)
            if event is not None:
                events.append(event)
        if rest:
            self._line.append(rest)
            self._grow(len(rest))
        return events

    def _grow(self, more: int) -> None:
        self._size_bytes += more
        if self._size_bytes > self._max_bytes:
            raise EventTooLarge

    def _parse_line(self, line: bytes) -> ServerSentEvent | None:
        if not self._begun:
            line, self._begun = line.removeprefix(BYTE_ORDER_MARK), True
        if not line:
            return self._end_event()
        name, _colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_bytes += len(value) + LINE_OVERHEAD_BYTES
        elif name == b"event":
            self._name = value[:100]
        elif name == b"signature":
            self._signature = value[:MAX_SIGNATURE_BYTES]
        else:
            self.idle_bytes += len(line)
            if name == b"retry" and value.isdigit() and len(value) <= MAX_RETRY_AFTER_DIGITS:
                self.retry_seconds = int(value) / 1000
        self._size_bytes = 0
        self._grow(self._data_bytes + len(self._name) + len(self._signature))
        return None

    def _end_event(self) -> ServerSentEvent | None:
        data, name, signature = self._data, self._name, self._signature
        self._data, self._name, self._signature = [], b"", b""
        self._data_bytes = self._size_bytes = 0
        self.idle_bytes += 1
        if not data:
            return None
        return ServerSentEvent(
            name.decode("utf-8", "replace") or "message",
            b"\n".join(data),
            signature.decode("ascii", "replace"),
        )
