"""Sends changes to the open sockets of this process: one stream, shared texts.

It receives notifications and reads the resources they name; it also watches the data plane's view
of PostgreSQL and Redis, since an outage can't be notified. Everything but the reads runs on the
event loop of the web process.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Protocol

import structlog

from controlplane.core.canonical import timestamp
from controlplane.core.errors import Unavailable
from controlplane.core.live.sockets import Socket, Sockets
from controlplane.core.live.stream import Stream
from controlplane.core.live.topics import DEGRADATION
from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE
from controlplane.core.redis_subscriber import Ear, Pace

from . import change_notices, stream, topics
from .connection_guard import Guard
from .query_threads import Desk
from .subscribers import Headers, Session, Visitor
from .topic_publisher import Lane

PACE = Pace(connect_seconds=1.0, silence_seconds=1.0, longest_pause_seconds=2.0)
WATCH_SECONDS = 0.1
HANDSHAKE_THREADS = 2
MAX_HANDSHAKES = 256
GOING_AWAY = 1012
"""Close code of a restarting server."""

log = structlog.get_logger(__name__)


class Surroundings(Protocol):
    """State of the surrounding process, answered from memory, as the hub needs it."""

    def database_reachable(self) -> bool: ...

    def wall(self) -> datetime:
        """Now, by the database's clock."""

    def degradation(self, *, hears: bool) -> Mapping[str, Any]:
        """Return the installation's degradation, given whether notifications are received."""

    def holder(self, headers: Headers) -> Visitor:
        """Return the visitor for the token in these headers; raise if the token is invalid."""

    def token_stands(self, visitor: Visitor) -> bool:
        """Return True if the visitor's token is still valid."""

    def find_session(self, key: str) -> Visitor:
        """Return the visitor of a session key, by the database.

        Raises :class:`Unauthenticated` if the session is over, :class:`Forbidden` if its person
        has yet to set up a second factor.
        """

    def ended_sessions(self, sessions: Collection[Session]) -> set[Session]:
        """Return the ended ones of these sessions, by one query."""


class Hub:
    """The live sockets of this process; created once, started and stopped with the server."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.around = surroundings
        self.sockets = Sockets()
        self.desk = Desk()
        self.door = Desk(HANDSHAKE_THREADS, MAX_HANDSHAKES)
        """Authenticates handshakes in threads of its own, so strangers don't delay open sockets."""
        self.stream = Stream(topic.name for topic in topics.known())
        self.hears = False
        """True while notifications are received."""
        self._deaf = False
        """True after a failed attempt to receive them."""
        self.closing = False
        self._lanes: dict[str, Lane] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, redis_url: str) -> None:
        """Begin to listen, on the event loop that runs."""
        around = self.around
        self._lanes = {
            topic.name: Lane(topic, self.stream, self.sockets, self.desk, around.database_reachable)
            for topic in topics.known()
            if topic.read is not None
        }
        ear = Ear(
            redis_url,
            LIVE_CHANNEL,
            PACE,
            on_message=self.hear,
            on_begin=self._begin,
            on_lost=self._lose,
        )
        guard = Guard(
            self.sockets,
            self.desk,
            around.token_stands,
            around.ended_sessions,
            self._heartbeat,
        )
        work = [ear.run(), guard.run(), self._watch(), *(one.run() for one in self._lanes.values())]
        self._tasks = [asyncio.create_task(each) for each in work]

    async def stop(self) -> None:
        self.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.desk.close()
        self.door.close()

    def close(self) -> None:
        """Let every socket go, now and from now on."""
        self.closing = True
        for socket in self.sockets:
            socket.end(GOING_AWAY, "The server is about to end; connect again in a moment.")

    def enter(self, visitor: Visitor) -> Socket:
        """Add a socket for this visitor, until :meth:`leave`.

        Its first message contains each topic's current position; it receives every later change.
        Raises :class:`Unavailable` and :class:`TooManyRequests`.
        """
        if self.closing:
            raise Unavailable("This server is about to end; connect again.", retry_after=2)
        socket = Socket(visitor, self._hello(visitor.topics))
        self.sockets.enter(socket)
        return socket

    def leave(self, socket: Socket) -> None:
        self.sockets.leave(socket)

    def _hello(self, names: Collection[str]) -> str:
        return self.stream.hello(names, hears=self.hears)

    def hear(self, text: bytes) -> None:
        """Handle a notification; invalid ones are ignored."""
        if text == MISSED_NOTE:
            self._begin()
            return
        note = change_notices.read(text)
        lane = self._lanes.get(note[0]) if note else None
        if note is not None and lane is not None:
            lane.note(note[1])

    def _begin(self) -> None:
        """Start a new stream once notifications arrive, because earlier ones may be missing."""
        self.hears, self._deaf = True, False
        self.stream.begin_anew()
        for lane in self._lanes.values():
            lane.forget()
        for socket in self.sockets:
            socket.begin_anew(self._hello(socket.topics))

    def _lose(self) -> None:
        """Notify all clients once that notifications are being missed."""
        if self._deaf:
            return
        self.hears, self._deaf = False, True
        said = self._heartbeat()
        for socket in self.sockets:
            socket.say(said)

    async def _watch(self) -> None:
        """Send the degradation to clients whenever it changes."""
        told = self.around.degradation(hears=not self._deaf)
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                present = self.around.degradation(hears=not self._deaf)
            except Exception:
                log.exception("live.degradation_unknown")
                continue
            if present != told:
                told = present
                self._tell_degradation(present)

    def _tell_degradation(self, present: Mapping[str, Any]) -> None:
        name = DEGRADATION.name
        text = self.stream.number(name, DEGRADATION.event, self._at(), present)
        for socket in self.sockets:
            socket.tell(name, [text])

    def _heartbeat(self) -> str:
        return stream.heartbeat(self._at(), hears=self.hears)

    def _at(self) -> str:
        return timestamp(self.around.wall())
