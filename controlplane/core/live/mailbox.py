"""Bounded message queue of one socket. Pure.

Messages are shared between sockets, so each queued message costs one reference.
"""

from collections import deque

from controlplane.core.live import stream

MAX_MESSAGES = 256


class Mailbox:
    """A FIFO queue of texts for one socket.

    When it is full, messages are dropped. Once the queue is empty, the client is told to reload the
    topics of the dropped messages.
    """

    def __init__(self, most: int = MAX_MESSAGES) -> None:
        self._most = most
        self._texts: deque[str] = deque()
        self._reloads: dict[str, None] = {}

    @property
    def room(self) -> int:
        """Number of texts that still fit."""
        return self._most - len(self._texts)

    def put(self, topic: str, text: str) -> None:
        """Queue a numbered message; drop it if the queue is full or the topic must be reloaded."""
        if topic in self._reloads:
            return
        if len(self._texts) < self._most:
            self._texts.append(text)
        else:
            self._reloads[topic] = None

    def mark_for_reload(self, topic: str) -> None:
        self._reloads[topic] = None

    def put_unnumbered(self, text: str) -> None:
        """Queue a text without a number, or drop it if the queue is full."""
        if len(self._texts) < self._most:
            self._texts.append(text)

    def restart(self, hello: str) -> None:
        """Discard all queued texts; `hello` makes the client reload everything."""
        self._texts.clear()
        self._reloads.clear()
        self._texts.append(hello)

    def take(self) -> str | None:
        """Remove and return the next text; None if there is none."""
        if self._texts:
            return self._texts.popleft()
        if self._reloads:
            topic = next(iter(self._reloads))
            del self._reloads[topic]
            return stream.build_resync(topic)
        return None
