"""Open sockets of this process, with their queues and limits."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

from controlplane.core.errors import TooManyRequests, Unavailable
from controlplane.core.live.subscribers import Subscriber
from controlplane.core.rate_limiter import RateLimit, TokenBucket
from controlplane.live import connections, stream
from controlplane.live.connections import Peer, Traffic

MAX_SOCKETS = 5_000
MAX_EACH = 50
STUCK_SECONDS = 20.0
SLOW_SECONDS = 0.5
"""Duration of a pending write after which publishers don't wait for the socket."""
MAX_UNFINISHED_BYTES = 64 * 1024
"""Limit for an incomplete message, including the opening handshake."""
BYTES_EACH_LOOK = 256
MAX_SILENT_BYTES = 1024 * 1024
"""Limit for all bytes since the last complete message."""
ASKS_PER_SECOND, ASKS_AT_ONCE = 1.0, 20.0
RETRY_AFTER_SECONDS = 10
MAX_MESSAGES = 256

SendText = Callable[[str], Awaitable[None]]


class Mailbox:
    """A bounded FIFO queue of encoded messages (texts) for one socket.

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
        """Queue a message of a topic; drop it if the queue is full or a reload is pending."""
        if topic in self._reloads:
            return
        if len(self._texts) < self._most:
            self._texts.append(text)
        else:
            self._reloads[topic] = None

    def mark_for_reload(self, topic: str) -> None:
        self._reloads[topic] = None

    def put_unnumbered(self, text: str) -> None:
        """Queue a message of no topic, such as a heartbeat; drop it if the queue is full."""
        if len(self._texts) < self._most:
            self._texts.append(text)

    def restart(self, hello: str) -> None:
        """Replace all queued texts by the message `hello`, which makes the client reload."""
        self._texts.clear()
        self._reloads.clear()
        self._texts.append(hello)

    def take_text(self) -> str | None:
        """Remove and return the next text; None if there is none."""
        if self._texts:
            return self._texts.popleft()
        if self._reloads:
            topic = next(iter(self._reloads))
            del self._reloads[topic]
            return stream.build_resync(topic)
        return None


class Socket:
    """An open socket with its own writer task, so that a slow client delays no other socket."""

    def __init__(self, subscriber: Subscriber, hello: str) -> None:
        self.subscriber = subscriber
        self.topics: Collection[str] = subscriber.topics
        self.mailbox = Mailbox()
        self.mailbox.restart(hello)
        self.ending: tuple[int, str] | None = None
        """The code and reason of the pending close."""
        self.sent_at = time.monotonic()
        self.task: asyncio.Task[None] | None = None
        """The task that serves the socket; cancelled if the client stops reading."""
        self.stuck = False
        self.connection: Peer | None = None
        """Address and port of the peer."""
        self.descriptor: int | None = None
        self.messages = 0
        """Number of complete messages received."""
        self._counted = (0, 0, 0)
        self._acknowledged = (-1, 0.0)
        self.message_limit = TokenBucket(RateLimit(ASKS_PER_SECOND, ASKS_AT_ONCE))
        """Rate limit of the client's messages."""
        self._write_began = 0.0
        self._has_output = asyncio.Event()

    def send_changes(self, topic: str, texts: Sequence[str]) -> None:
        """Queue encoded messages of a topic, if the socket is subscribed to it."""
        if topic in self.topics:
            for text in texts:
                self.mailbox.put(topic, text)
            self._has_output.set()

    def subscribe(self, topics: Collection[str]) -> None:
        """Replace the subscribed topics; the client is told to load each new topic."""
        for topic in sorted(set(topics).difference(self.topics)):
            self.mailbox.mark_for_reload(topic)
        self.topics = topics
        self._has_output.set()

    def mark_for_reload(self, topic: str) -> None:
        if topic in self.topics:
            self.mailbox.mark_for_reload(topic)
            self._has_output.set()

    def send(self, text: str) -> None:
        self.mailbox.put_unnumbered(text)
        self._has_output.set()

    def restart(self, hello: str) -> None:
        self.mailbox.restart(hello)
        self._has_output.set()

    def end(self, code: int, reason: str) -> None:
        """Close the socket after the current write; only the first call sets the reason."""
        self.ending = self.ending or (code, reason)
        self._has_output.set()

    def is_writable(self, now: float) -> bool:
        """Return True unless a write to the client is pending for longer than `SLOW_SECONDS`."""
        return self._write_began == 0 or now - self._write_began < SLOW_SECONDS

    def abandon_if_stuck(self, now: float) -> bool:
        """Abandon the socket if a write to its client has hung too long; return True if so."""
        stuck = self._write_began > 0 and now - self._write_began > STUCK_SECONDS
        if not stuck or self.stuck:
            return False
        self.abandon()
        return True

    def abandon(self) -> None:
        """Cancel the socket's task and reset its connection without a closing handshake."""
        self.stuck = True
        if self.connection is not None:
            connections.abort_connection(self.connection)
        if self.task is not None:
            self.task.cancel()

    def is_stalled(self, traffic: Traffic, now: float) -> bool:
        """Return True if the client has not acknowledged pending output for too long."""
        if not traffic.is_pending or traffic.acknowledged != self._acknowledged[0]:
            self._acknowledged = traffic.acknowledged, now
        return now - self._acknowledged[1] > STUCK_SECONDS

    def is_flooding(self, received: int) -> bool:
        """Return True if the client has sent too many bytes without completing a message.

        `received` is the connection's total of received bytes. It includes pings and other control
        frames, for which each check allows `BYTES_EACH_LOOK`, up to `MAX_SILENT_BYTES` in all.
        """
        messages, completed_at, base = self._counted
        if messages != self.messages:
            completed_at = base = received
        else:
            base = min(received, base + BYTES_EACH_LOOK)
        self._counted = self.messages, completed_at, base
        return received - base > MAX_UNFINISHED_BYTES or received - completed_at > MAX_SILENT_BYTES

    async def write(self, send: SendText) -> tuple[int, str]:
        """Write queued texts until the socket is to be closed; return the close code and reason."""
        while self.ending is None:
            text = self.mailbox.take_text()
            if text is None:
                self._has_output.clear()
                await self._has_output.wait()
                continue
            self._write_began = time.monotonic()
            await send(text)
            self.sent_at, self._write_began = time.monotonic(), 0.0
        return self.ending


class Sockets:
    """The open sockets: at most `most` in this process, `most_each` per person or token."""

    def __init__(self, most: int = MAX_SOCKETS, most_each: int = MAX_EACH) -> None:
        self._most = most
        self._most_each = most_each
        self._open: dict[Socket, None] = {}
        self._by_name: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Socket]:
        return iter(list(self._open))

    def __len__(self) -> int:
        return len(self._open)

    def add(self, socket: Socket) -> None:
        """Add a socket. Raise :class:`Unavailable` or :class:`TooManyRequests` above the limits."""
        if len(self._open) >= self._most:
            raise Unavailable(
                "Too many WebSockets are open. Poll, and try again later.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        name = socket.subscriber.name
        if self._by_name[name] >= self._most_each:
            raise TooManyRequests(
                f"You already have {self._most_each} WebSockets open. Close some.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        self._open[socket] = None
        self._by_name[name] += 1

    def remove(self, socket: Socket) -> None:
        if self._open.pop(socket, socket) is None:
            name = socket.subscriber.name
            self._by_name[name] -= 1
            if not self._by_name[name]:
                del self._by_name[name]

    def has_subscriber(self, topic: str) -> bool:
        return any(topic in socket.topics for socket in self._open)

    def are_backlogged(self, topic: str, texts: int) -> bool:
        """Return True if most sockets of a topic lack room for `texts` more messages.

        In that case the server or the network is slow, not a single client.
        """
        now = time.monotonic()
        taking = [one for one in self._open if topic in one.topics and one.is_writable(now)]
        full = sum(one.mailbox.room < texts for one in taking)
        return 2 * full > len(taking)
