"""Notifies open sockets, through Redis, that breakers changed. Best effort.

Names are collected while a message is being sent, so a burst becomes a few messages. Nothing waits
for Redis. Subscribers can't detect a lost message, so a notice of loss is sent once Redis is back.
"""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

import orjson
import structlog

from controlplane.core.async_redis import make_client
from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE
from controlplane.core.timeouts import wait_at_most

if TYPE_CHECKING:
    from redis.asyncio import Redis

TOPIC = "breakers"
MAX_NAMES = 20_000
NAMES_AT_ONCE = 200
"""Most names per message; more are sent in several."""
REST_SECONDS = 0.02
STIR_SECONDS = 1.0
"""Interval between notices of changed rates, which every report changes."""
TIMEOUT_SECONDS = 0.5
PAUSE_SECONDS = 1.0

log = structlog.get_logger(__name__)


class BreakerNotices:
    """Pending notices, at most `most` names of each kind."""

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._moved: set[str] = set()
        self._stirred: set[str] = set()
        self._woken = asyncio.Event()
        self._stirred_at = float("-inf")
        self._failing = False
        self.has_lost_notices = False
        """True if some changes were never announced."""

    def announce(self, moved: Iterable[str], stirred: Iterable[str]) -> None:
        """Announce dependencies whose state or mode changed, and those with changed rates only."""
        for names, kept in ((moved, self._moved), (stirred, self._stirred)):
            if len(kept) < self._most:
                kept.update(names)
            else:
                self.has_lost_notices = True
        if self._moved:
            self._woken.set()

    async def run(self, redis_url: str) -> None:
        """Publish until canceled; without Redis, names are dropped and a notice of loss is owed."""
        self._woken = asyncio.Event()  # An event belongs to one loop.
        client = await make_client(redis_url, TIMEOUT_SECONDS)
        try:
            while True:
                await self._pause()
                names = self._take_names()
                if names or self.has_lost_notices:
                    await self._publish(client, names)
                await asyncio.sleep(PAUSE_SECONDS if self._failing else REST_SECONDS)
        finally:
            await wait_at_most(TIMEOUT_SECONDS, client.aclose())

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(STIR_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            return

    def _take_names(self) -> list[str]:
        self._woken.clear()
        names, self._moved = self._moved, set()
        now = asyncio.get_running_loop().time()
        if self._stirred and now - self._stirred_at >= STIR_SECONDS:
            self._stirred_at = now
            names |= self._stirred
            self._stirred = set()
        return sorted(names)

    async def _publish(self, client: "Redis", names: list[str]) -> None:
        pipeline = client.pipeline(transaction=False)
        owed, self.has_lost_notices = self.has_lost_notices, False
        if owed:
            pipeline.publish(LIVE_CHANNEL, MISSED_NOTE)
        for start in range(0, len(names), NAMES_AT_ONCE):
            some = names[start : start + NAMES_AT_ONCE]
            pipeline.publish(LIVE_CHANNEL, orjson.dumps({"topic": TOPIC, "ids": some}))
        try:
            await wait_at_most(2 * TIMEOUT_SECONDS, pipeline.execute())
        except Exception as error:  # Any error: the next message may succeed.
            if not self._failing:
                kind = type(error).__name__
                log.warning("dataplane.notices_lost", kind=kind, error=str(error))
            self._failing = self.has_lost_notices = True
        else:
            self._failing = False
