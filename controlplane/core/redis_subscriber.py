"""A subscriber to a Redis channel that detects possibly missed messages. Runs without Django."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from .async_redis import make_client
from .timeouts import within

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

FIRST_PAUSE_SECONDS = 0.2

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Pace:
    """Timing of a subscriber, in seconds.

    `connect_seconds` is the connect timeout, `silence_seconds` the idle time before a PING, and
    `longest_pause_seconds` the longest pause between two connection attempts.
    """

    connect_seconds: float
    silence_seconds: float
    longest_pause_seconds: float

    def pause_seconds(self, failures: int) -> float:
        """Return the longest pause in seconds after so many consecutive failures."""
        doublings = min(failures, 10)  # A float would overflow after hours without Redis.
        return min(FIRST_PAUSE_SECONDS * 2.0**doublings, self.longest_pause_seconds)


class Ear:
    """A Redis pub/sub listener that reconnects by itself.

    It calls `on_message` for each message, `on_begin` at each (re)subscription and `on_lost` for
    each failed attempt. A connection silent for twice `silence_seconds`, even after a PING, is
    closed.
    """

    def __init__(
        self,
        redis_url: str,
        channel: str,
        pace: Pace,
        *,
        on_message: Callable[[bytes], None],
        on_begin: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._redis_url = redis_url
        self._channel = channel
        self._pace = pace
        self._on_message = on_message
        self._on_begin = on_begin
        self._on_lost = on_lost
        self._failures = 0

    async def run(self) -> None:
        """Supervise the subscription until cancelled; attempts grow apart, with jitter."""
        while True:
            try:
                await self._subscription()
            except Exception as error:
                if self._failures == 0:
                    said = {"kind": type(error).__name__, "error": str(error)}
                    log.warning("ear.lost", channel=self._channel, **said)
                self._on_lost()
                self._failures += 1
            longest = self._pace.pause_seconds(self._failures)
            await asyncio.sleep(random.uniform(longest / 2, longest))  # noqa: S311

    async def _subscription(self) -> None:
        seconds = self._pace.connect_seconds
        client = await make_client(self._redis_url, seconds)
        pubsub = client.pubsub()
        try:
            await within(seconds, pubsub.subscribe(self._channel))
            await self._listen(pubsub)
        finally:
            with contextlib.suppress(_redis_error(), OSError):
                await within(seconds, pubsub.aclose())  # type: ignore[no-untyped-call]
                await within(seconds, client.aclose())

    async def _listen(self, pubsub: "PubSub") -> None:
        # A frozen server or a line cut without a word looks like one with nothing to say.
        pinged, silence = False, self._pace.silence_seconds
        while True:
            message = await pubsub.get_message(timeout=silence)
            if message is not None:
                pinged = False
                self._heard(message)
            elif pinged:
                raise TimeoutError(f"silent for {2 * silence:g} s")
            else:
                pinged = True
                await within(self._pace.connect_seconds, pubsub.ping())

    def _heard(self, message: dict[str, object]) -> None:
        data = message["data"]
        if message["type"] == "subscribe":
            if self._failures:
                log.info("ear.found", channel=self._channel)
            self._failures = 0
            self._on_begin()
        elif message["type"] == "message" and isinstance(data, bytes):
            self._on_message(data)


def _redis_error() -> type[Exception]:
    from redis.exceptions import RedisError  # Loaded by now.

    return RedisError
