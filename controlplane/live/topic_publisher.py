"""Publisher of one topic: buffers changed ids, reads the resources, sends them to sockets."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.live.topics import Read, Topic

from .query_threads import DATABASE_ERRORS, QueryPool
from .sockets import Sockets
from .stream import EventStream

GATHER_SECONDS = 0.05
READ_SECONDS = 5.0
PAUSE_SECONDS = 0.5
TEXTS_AT_ONCE = 2_000
"""Texts queued before the event loop runs other tasks: about a millisecond's work."""
PATIENCE_SECONDS = 5.0
"""Maximum time that a batch waits for room in the sockets' mailboxes."""
LOOK_SECONDS = 0.02

MAX_BUFFERED_IDS = 5_000
BATCH_SIZE = 100
"""Ids per query: fewer than a mailbox holds, so that a client that keeps up receives all."""

log = structlog.get_logger(__name__)


class ChangeBuffer:
    """Unique ids of changed resources, in the order they were first added.

    With more than `most` ids, the buffer discards all of them and sets `overflowed`.
    """

    def __init__(self, most: int = MAX_BUFFERED_IDS, batch_size: int = BATCH_SIZE) -> None:
        self._most = most
        self._batch_size = batch_size
        self._ids: dict[str, None] = {}
        self.overflowed = False
        """True if ids were lost since :meth:`clear`."""

    def __len__(self) -> int:
        return len(self._ids)

    def note(self, ids: Iterable[str]) -> None:
        self._ids.update(dict.fromkeys(ids))
        if len(self._ids) > self._most:
            self._ids.clear()
            self.overflowed = True

    def pop_batch(self) -> list[str]:
        """Remove and return the next ids, oldest first."""
        taken = list(self._ids)[: self._batch_size]
        for each in taken:
            del self._ids[each]
        return taken

    def clear(self) -> None:
        self._ids.clear()
        self.overflowed = False


class TopicPublisher:
    """Sends the changed resources of a topic to sockets, one batch after another, in order."""

    def __init__(
        self,
        topic: Topic,
        stream: EventStream,
        sockets: Sockets,
        query_pool: QueryPool,
        database_reachable: Callable[[], bool],
    ) -> None:
        self.topic = topic
        self._stream = stream
        self._sockets = sockets
        self._query_pool = query_pool
        self._database_reachable = database_reachable
        self._changes = ChangeBuffer()
        self._has_changes = asyncio.Event()

    def note(self, ids: Iterable[str]) -> None:
        self._changes.note(ids)
        self._has_changes.set()

    def forget(self) -> None:
        """Discard pending changes, because all clients are about to reload."""
        self._changes.clear()

    async def run(self) -> None:
        while True:
            await self._has_changes.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._has_changes.clear()
            try:
                await self._publish_changes()
            except Exception:
                # The content can't be sent, but the fact that it changed can.
                log.exception("live.topic_read_failed", topic=self.topic.name)
                self._resync()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _publish_changes(self) -> None:
        if not self._sockets.has_subscriber(self.topic.name):
            self._changes.clear()
        assert self.topic.read is not None  # noqa: S101 - only such topics have a publisher
        while ids := await self._next():
            stream_id = self._stream.id
            read = partial(_read_resources, self.topic.read, ids)
            try:
                at, resources = await self._query_pool.run(read, READ_SECONDS)
            except DATABASE_ERRORS as error:
                log.info("live.database_away", topic=self.topic.name, error=str(error))
                self.note(ids)
                await asyncio.sleep(PAUSE_SECONDS)
                while not self._database_reachable():
                    await asyncio.sleep(PAUSE_SECONDS)
                return
            # Data read for an ended stream may be older than the clients' reloaded state.
            if self._stream.id == stream_id:
                await self._send(ids, at, resources)

    async def _next(self) -> list[str]:
        """Return the next batch of changed ids, once most sockets have room for its messages.

        Batches let clients that keep up receive all changes of a burst. If ids were lost, all
        clients are told to reload the topic.
        """
        ends = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < ends and self._sockets.are_backlogged(
            self.topic.name, min(len(self._changes), BATCH_SIZE)
        ):
            await asyncio.sleep(LOOK_SECONDS)
        if self._changes.overflowed:
            self._changes.clear()
            self._resync()
        return self._changes.pop_batch()

    async def _send(self, ids: Sequence[str], at: str, resources: Mapping[str, Any]) -> None:
        """Send the present resource of each id, or its removal, to all subscribed sockets.

        A socket opened meanwhile may miss these messages; its client loads the present state.
        """
        stream_id, name = self._stream.id, self.topic.name
        texts = [
            self._stream.number_event(name, self.topic.event, at, resources[each])
            if each in resources
            else self._stream.number_event(name, self.topic.event_of_removal, at, {"id": each})
            for each in ids
        ]
        put = 0
        for socket in self._sockets:
            socket.send_changes(name, texts)
            put += len(texts)
            if put >= TEXTS_AT_ONCE:
                put = 0
                await asyncio.sleep(0)
                if self._stream.id != stream_id:
                    return  # All clients were told to reload; these numbers are obsolete.

    def _resync(self) -> None:
        for socket in self._sockets:
            socket.mark_for_reload(self.topic.name)


def _read_resources(read: Read, ids: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    now = db_now()
    return timestamp(now), read(ids, now)
