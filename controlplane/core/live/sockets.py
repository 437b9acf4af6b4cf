"""The open sockets of this process, their queues, and their limits."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

from controlplane.core.errors import TooManyRequests, Unavailable
from controlplane.core.live import connections
from controlplane.core.live.connections import Peer, Traffic
from controlplane.core.live.mailbox import Mailbox

from .subscribers import Visitor
from .token_bucket import Pace

MAX_SOCKETS = 5_000
MAX_EACH = 50
STUCK_SECONDS = 20.0
SLOW_SECONDS = 0.5
"""A socket that hasn't taken a message for this long is not waited for."""
MAX_UNFINISHED_BYTES = 64 * 1024
"""Limit for an unfinished message, including the opening handshake."""
BYTES_EACH_LOOK = 256
MAX_SILENT_BYTES = 1024 * 1024
"""Limit for all bytes since the last complete message, however slowly they arrive."""
ASKS_PER_SECOND, ASKS_AT_ONCE = 1.0, 20.0
RETRY_AFTER_SECONDS = 10

SendText = Callable[[str], Awaitable[None]]


class Socket:
    """An open socket, with a writer task of its own so that a slow client delays no other."""

    def __init__(self, visitor: Visitor, hello: str) -> None:
        self.visitor = visitor
        self.topics: Collection[str] = visitor.topics
        self.mailbox = Mailbox()
        self.mailbox.begin_anew(hello)
        self.ending: tuple[int, str] | None = None
        """The code and reason of the pending close."""
        self.said_at = time.monotonic()
        self.task: asyncio.Task[None] | None = None
        """The task that serves it, to be cancelled if the client stops reading."""
        self.stuck = False
        self.connection: Peer | None = None
        """Address and port of the peer."""
        self.descriptor: int | None = None
        self.messages = 0
        """Number of complete messages received."""
        self._counted = (0, 0, 0)
        self._taken = (-1, 0.0)
        self.asks = Pace(ASKS_PER_SECOND, ASKS_AT_ONCE)
        """Rate limit of the client's messages."""
        self._sending_since = 0.0
        self._news = asyncio.Event()

    def tell(self, topic: str, texts: Sequence[str]) -> None:
        """Have numbered messages written, if their topic is listened to."""
        if topic in self.topics:
            for text in texts:
                self.mailbox.put(topic, text)
            self._news.set()

    def listen_to(self, topics: Collection[str]) -> None:
        """Replace the socket's topics; the client is told to load each new one."""
        for topic in sorted(set(topics).difference(self.topics)):
            self.mailbox.leave_out(topic)
        self.topics = topics
        self._news.set()

    def leave_out(self, topic: str) -> None:
        if topic in self.topics:
            self.mailbox.leave_out(topic)
            self._news.set()

    def say(self, text: str) -> None:
        self.mailbox.say(text)
        self._news.set()

    def begin_anew(self, hello: str) -> None:
        self.mailbox.begin_anew(hello)
        self._news.set()

    def end(self, code: int, reason: str) -> None:
        """Close the socket after the current write; the first reason counts."""
        self.ending = self.ending or (code, reason)
        self._news.set()

    def takes(self, now: float) -> bool:
        """Return True unless a write has been pending for too long."""
        return self._sending_since == 0 or now - self._sending_since < SLOW_SECONDS

    def give_up(self, now: float) -> bool:
        """Abandon the socket if a write has been stuck for too long; return True if so."""
        stuck = self._sending_since > 0 and now - self._sending_since > STUCK_SECONDS
        if not stuck or self.stuck:
            return False
        self.abandon()
        return True

    def abandon(self) -> None:
        """Cancel its task and close its connection without a closing handshake."""
        self.stuck = True
        if self.connection is not None:
            connections.cut(self.connection)
        if self.task is not None:
            self.task.cancel()

    def stalls(self, traffic: Traffic, now: float) -> bool:
        """Return True if the peer has not acknowledged pending output for too long."""
        if not traffic.waiting or traffic.taken != self._taken[0]:
            self._taken = traffic.taken, now
        return now - self._taken[1] > STUCK_SECONDS

    def floods(self, received: int) -> bool:
        """Return True if one message is too long, given all bytes `received` so far.

        `BYTES_EACH_LOOK` are allowed for pings and other control frames between messages, but at
        most `MAX_SILENT_BYTES` in all: they can't be told from a message that comes slowly.
        """
        messages, completed_at, base = self._counted
        if messages != self.messages:
            completed_at = base = received
        else:
            base = min(received, base + BYTES_EACH_LOOK)
        self._counted = self.messages, completed_at, base
        return received - base > MAX_UNFINISHED_BYTES or received - completed_at > MAX_SILENT_BYTES

    async def write(self, send: SendText) -> tuple[int, str]:
        """Write waiting texts until the socket is to be closed; return the code and reason."""
        while self.ending is None:
            text = self.mailbox.take()
            if text is None:
                self._news.clear()
                await self._news.wait()
                continue
            self._sending_since = time.monotonic()
            await send(text)
            self.said_at, self._sending_since = time.monotonic(), 0.0
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

    def enter(self, socket: Socket) -> None:
        """Raises :class:`Unavailable` or :class:`TooManyRequests` if it is one too many."""
        if len(self._open) >= self._most:
            raise Unavailable(
                "Too many sockets are open here; poll, and try later.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        name = socket.visitor.name
        if self._by_name[name] >= self._most_each:
            raise TooManyRequests(
                f"{self._most_each} sockets are open for you already; close some.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        self._open[socket] = None
        self._by_name[name] += 1

    def leave(self, socket: Socket) -> None:
        if self._open.pop(socket, socket) is None:
            name = socket.visitor.name
            self._by_name[name] -= 1
            if not self._by_name[name]:
                del self._by_name[name]

    def listen_to(self, topic: str) -> bool:
        return any(topic in socket.topics for socket in self._open)

    def are_behind(self, topic: str, texts: int) -> bool:
        """Return True if most readable sockets lack room for this many texts.

        Then the server or the network is slow, not a single client.
        """
        now = time.monotonic()
        taking = [one for one in self._open if topic in one.topics and one.takes(now)]
        full = sum(one.mailbox.room < texts for one in taking)
        return 2 * full > len(taking)
