"""Hears notes on Redis, and knows when it may have missed some."""

import asyncio
import contextlib
import random
from collections.abc import Callable

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from controlplane.core.wire import LIVE_CHANNEL

CONNECT_SECONDS = 1.0
SILENCE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 2.0

log = structlog.get_logger(__name__)


class Ear:
    """Calls `on_note` for each note, `on_begin` whenever it begins to hear, `on_lost` when it ends.

    A server that has said nothing for twice `silence_seconds`, not even to a PING, is given up.
    """

    def __init__(
        self,
        redis_url: str,
        *,
        on_note: Callable[[bytes], None],
        on_begin: Callable[[], None],
        on_lost: Callable[[], None],
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._redis_url = redis_url
        self._on_note = on_note
        self._on_begin = on_begin
        self._on_lost = on_lost
        self._silence_seconds = silence_seconds
        self._failures = 0

    async def run(self) -> None:
        """Supervise the subscription until cancelled; attempts grow apart, with jitter."""
        while True:
            try:
                await self._subscription()
            except Exception as error:
                if self._failures == 0:
                    log.warning("live.notes_lost", kind=type(error).__name__, error=str(error))
                    self._on_lost()
                self._failures += 1
            longest = min(0.2 * 2.0 ** min(self._failures, 10), LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(random.uniform(longest / 2, longest))  # noqa: S311

    async def _subscription(self) -> None:
        client = Redis.from_url(
            self._redis_url,
            protocol=2,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=CONNECT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        pubsub = client.pubsub()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await pubsub.subscribe(LIVE_CHANNEL)
            await self._listen(pubsub)
        finally:
            with contextlib.suppress(RedisError, OSError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await pubsub.aclose()  # type: ignore[no-untyped-call]
                    await client.aclose()

    async def _listen(self, pubsub: PubSub) -> None:
        pinged = False
        while True:
            message = await pubsub.get_message(timeout=self._silence_seconds)
            if message is not None:
                pinged = False
                self._heard(message)
            elif pinged:
                raise RedisError(f"silent for {2 * self._silence_seconds:g} s")
            else:
                pinged = True
                async with asyncio.timeout(CONNECT_SECONDS):
                    await pubsub.ping()

    def _heard(self, message: dict[str, object]) -> None:
        data = message["data"]
        if message["type"] == "subscribe":
            if self._failures:
                log.info("live.notes_found")
            self._failures = 0
            self._on_begin()
        elif message["type"] == "message" and isinstance(data, bytes):
            self._on_note(data)
