"""One topic's way from notes to messages: gather, read once, number, tell."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.live.asking import AWAY, Desk
from controlplane.core.live.gathering import Gathering
from controlplane.core.live.sockets import Sockets
from controlplane.core.live.stream import Stream
from controlplane.core.live.topics import Read, Topic

GATHER_SECONDS = 0.05
READ_SECONDS = 5.0
PAUSE_SECONDS = 0.5

log = structlog.get_logger(__name__)


class Lane:
    """Reads one batch after the other, so a socket never sees an older state after a newer one."""

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
        """All is about to be read anew by everybody."""
        self._gathering.clear()

    async def run(self) -> None:
        while True:
            await self._noted.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._noted.clear()
            try:
                await self._turn()
            except Exception:
                # It can't be told what changed: that it did can.
                log.exception("live.topic_unread", topic=self.topic.name)
                self._resync()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _turn(self) -> None:
        if not self._sockets.listen_to(self.topic.name):
            self._gathering.clear()
        if self._gathering.overflowed:
            self._gathering.clear()
            self._resync()
        while ids := self._gathering.take():
            stream_id = self._stream.id
            try:
                at, found = await self._read(ids)
            except AWAY as error:
                log.info("live.database_away", topic=self.topic.name, error=str(error))
                self.note(ids)
                await self._wait_for_database()
                return
            # What was read for a stream that is over may be older than what is read anew by now.
            if self._stream.id == stream_id:
                self._tell(ids, at, found)
            await asyncio.sleep(0)

    async def _read(self, ids: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        assert self.topic.read is not None  # noqa: S101 - a lane is made for topics that have one
        return await self._desk.ask(partial(_read, self.topic.read, ids), READ_SECONDS)

    def _tell(self, ids: Sequence[str], at: str, found: Mapping[str, Any]) -> None:
        name = self.topic.name
        for each in ids:
            resource = found.get(each)
            if resource is None:
                text = self._stream.number(name, self.topic.event_of_removal, at, {"id": each})
            else:
                text = self._stream.number(name, self.topic.event, at, resource)
            for socket in self._sockets:
                socket.tell(name, text)

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
