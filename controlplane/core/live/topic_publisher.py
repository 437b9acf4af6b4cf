"""Publishes one topic: collects notifications, reads the resources once, numbers and sends them."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now

from .change_buffer import MAX_AT_ONCE, Gathering
from .query_threads import AWAY, Desk
from .sockets import Sockets
from .stream import Stream
from .topics import Read, Topic

GATHER_SECONDS = 0.05
READ_SECONDS = 5.0
PAUSE_SECONDS = 0.5
TEXTS_AT_ONCE = 2_000
"""Texts queued before other tasks of the loop run: about a millisecond's work."""
PATIENCE_SECONDS = 5.0
"""Longest wait of a batch until most sockets have room for it."""
LOOK_SECONDS = 0.02

log = structlog.get_logger(__name__)


class Lane:
    """A queue that reads one batch after the other, so a socket never gets an older state later."""

    def __init__(
        self,
        topic: Topic,
        stream: Stream,
        sockets: Sockets,
        desk: Desk,
        database_reachable: Callable[[], bool],
    ) -> None:
        self.topic = topic
        self._stream = stream
        self._sockets = sockets
        self._desk = desk
        self._database_reachable = database_reachable
        self._gathering = Gathering()
        self._noted = asyncio.Event()

    def note(self, ids: Iterable[str]) -> None:
        self._gathering.note(ids)
        self._noted.set()

    def forget(self) -> None:
        """Discard pending changes, because all clients are about to reload."""
        self._gathering.clear()

    async def run(self) -> None:
        while True:
            await self._noted.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._noted.clear()
            try:
                await self._turn()
            except Exception:
                # The content can't be sent, but the fact that it changed can.
                log.exception("live.topic_unread", topic=self.topic.name)
                self._resync()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _turn(self) -> None:
        if not self._sockets.listen_to(self.topic.name):
            self._gathering.clear()
        while ids := await self._next():
            stream_id = self._stream.id
            try:
                at, found = await self._read(ids)
            except AWAY as error:
                log.info("live.database_away", topic=self.topic.name, error=str(error))
                self.note(ids)
                await self._wait_for_database()
                return
            # Data read for an ended stream may be older than the clients' reloaded state.
            if self._stream.id == stream_id:
                await self._tell(ids, at, found)

    async def _next(self) -> list[str]:
        """Return the ids to read next, after waiting for room in the sockets' mailboxes.

        A burst is sent in batches, so that a client that keeps up misses nothing.
        """
        ends = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < ends and self._sockets.are_behind(
            self.topic.name, min(len(self._gathering), MAX_AT_ONCE)
        ):
            await asyncio.sleep(LOOK_SECONDS)
        if self._gathering.overflowed:
            self._gathering.clear()
            self._resync()
        return self._gathering.take()

    async def _read(self, ids: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        assert self.topic.read is not None  # noqa: S101 - a lane is made for topics that have one
        return await self._desk.ask(partial(_read, self.topic.read, ids), READ_SECONDS)

    async def _tell(self, ids: Sequence[str], at: str, found: Mapping[str, Any]) -> None:
        """Send the changes to all sockets open now.

        A socket opened meanwhile is greeted with the numbers assigned here, and loads the state
        itself.
        """
        stream_id, name = self._stream.id, self.topic.name
        texts = [self._number(each, at, found.get(each)) for each in ids]
        put = 0
        for socket in self._sockets:
            socket.tell(name, texts)
            put += len(texts)
            if put >= TEXTS_AT_ONCE:
                put = 0
                await asyncio.sleep(0)
                if self._stream.id != stream_id:
                    return  # All clients were told to reload; these numbers are obsolete.

    def _number(self, name: str, at: str, resource: Mapping[str, Any] | None) -> str:
        topic = self.topic
        if resource is None:
            return self._stream.number(topic.name, topic.event_of_removal, at, {"id": name})
        return self._stream.number(topic.name, topic.event, at, resource)

    def _resync(self) -> None:
        for socket in self._sockets:
            socket.leave_out(self.topic.name)

    async def _wait_for_database(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        while not self._database_reachable():
            await asyncio.sleep(PAUSE_SECONDS)


def _read(read: Read, ids: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    now = db_now()
    return timestamp(now), read(ids, now)
