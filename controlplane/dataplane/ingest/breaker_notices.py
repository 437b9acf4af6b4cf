"""Publisher of breaker changes to open WebSockets, through Redis. Best effort.

While a message is being sent, names of changed dependencies are collected for the next message.
Subscribers can't detect a lost message, so a "missed" message is published once Redis is back.
"""

import asyncio
import contextlib
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
MAX_NAMES_PER_MESSAGE = 200
REST_SECONDS = 0.02
RATES_SECONDS = 1.0
"""Interval between notices of changed rates, which change with every report."""
TIMEOUT_SECONDS = 0.5
PAUSE_SECONDS = 1.0

log = structlog.get_logger(__name__)


class BreakerNotices:
    """Collects the names of dependencies whose breakers changed, and publishes them in notices.

    A notice has at most about `most` names with changed states, and as many with changed rates.
    """

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most = most
        self._changed: set[str] = set()
        self._rates_changed: set[str] = set()
        self._has_changes = asyncio.Event()
        self._rates_sent_at = float("-inf")
        self._failing = False
        self.has_lost_notices = False
        """True if some changes were never published."""

    def announce(self, changed: Iterable[str], rates_changed: Iterable[str]) -> None:
        """Queue names of dependencies for the next notice.

        `changed` are those with a breaker in a new state or mode, `rates_changed` those with only
        new rates.
        """
        for names, pending in ((changed, self._changed), (rates_changed, self._rates_changed)):
            if len(pending) < self._most:
                pending.update(names)
            else:
                self.has_lost_notices = True
        if self._changed:
            self._has_changes.set()

    async def run(self, redis_url: str) -> None:
        self._has_changes = asyncio.Event()  # An event belongs to one loop.
        client = await make_client(redis_url, TIMEOUT_SECONDS)
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RATES_SECONDS):
                        await self._has_changes.wait()
                names = self._take_names()
                if names or self.has_lost_notices:
                    await self._publish(client, names)
                await asyncio.sleep(PAUSE_SECONDS if self._failing else REST_SECONDS)
        finally:
            await wait_at_most(TIMEOUT_SECONDS, client.aclose())

    def _take_names(self) -> list[str]:
        self._has_changes.clear()
        names, self._changed = self._changed, set()
        now = asyncio.get_running_loop().time()
        if self._rates_changed and now - self._rates_sent_at >= RATES_SECONDS:
            self._rates_sent_at = now
            names |= self._rates_changed
            self._rates_changed = set()
        return sorted(names)

    async def _publish(self, client: "Redis", names: list[str]) -> None:
        pipeline = client.pipeline(transaction=False)
        has_lost, self.has_lost_notices = self.has_lost_notices, False
        if has_lost:
            pipeline.publish(LIVE_CHANNEL, MISSED_NOTE)
        for start in range(0, len(names), MAX_NAMES_PER_MESSAGE):
            some = names[start : start + MAX_NAMES_PER_MESSAGE]
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
