"""A bounded, ordered queue of messages for one socket that records omissions. Pure.

Texts are shared between sockets, so each queued message costs one reference.
"""

from collections import deque

from controlplane.core.live import stream

MAX_MESSAGES = 256


class Mailbox:
    """A FIFO of texts for one socket.

    When it is full, the topic that doesn't fit is skipped until the rest has been read; then one
    message tells the client to reload it.
    """

    def __init__(self, most: int = MAX_MESSAGES) -> None:
        self._most = most
        self._texts: deque[str] = deque()
        self._left_out: dict[str, None] = {}

    @property
    def room(self) -> int:
        """Number of texts that still fit."""
        return self._most - len(self._texts)

    def put(self, topic: str, text: str) -> None:
        """Queue a numbered message; a skipped topic stays skipped."""
        if topic in self._left_out:
            return
        if len(self._texts) < self._most:
            self._texts.append(text)
        else:
            self._left_out[topic] = None

    def leave_out(self, topic: str) -> None:
        """Make the client reload the topic, without a message."""
        self._left_out[topic] = None

    def say(self, text: str) -> None:
        """Queue a text without a number; it is dropped if the mailbox is full."""
        if len(self._texts) < self._most:
            self._texts.append(text)

    def begin_anew(self, hello: str) -> None:
        """Discard all waiting texts; the client reloads everything."""
        self._texts.clear()
        self._left_out.clear()
        self._texts.append(hello)

    def take(self) -> str | None:
        """Return the next text to write; None if there is none."""
        if self._texts:
            return self._texts.popleft()
        if self._left_out:
            topic = next(iter(self._left_out))
            del self._left_out[topic]
            return stream.resync(topic)
        return None
