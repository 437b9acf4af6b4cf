"""Redis pub/sub subscriber that reconnects and detects dead connections; runs without Django."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from .async_redis import make_client
from .timeouts import wait_at_most

if TYPE_CHECKING:
    from redis.asyncio.client import PubSub

FIRST_PAUSE_SECONDS = 0.2

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class SubscriberTiming:
    """Timing of a Redis subscriber, in seconds.

    `connect_seconds` limits connecting and sending. After `silence_seconds` without a message a
    PING is sent, and after as many more the connection counts as dead. `longest_pause_seconds`
    limits the pause between two attempts to connect.
    """

    connect_seconds: float
    silence_seconds: float
    longest_pause_seconds: float

    def pause_seconds(self, failures: int) -> float:
        """Return the longest random pause before reconnecting, after so many failures in a row."""
        doublings = min(failures, 10)  # A float would overflow after hours without Redis.
        return min(FIRST_PAUSE_SECONDS * 2.0**doublings, self.longest_pause_seconds)


class RedisSubscriber:
    """A subscriber to a Redis channel that reconnects after failures and unanswered PINGs.

    Callbacks: `on_message` for a message, `on_begin` after subscribing, `on_lost` after a failure.
    """

    def __init__(
        self,
        redis_url: str,
        channel: str,
        timing: SubscriberTiming,
        *,
        on_message: Callable[[bytes], None],
        on_begin: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._redis_url = redis_url
        self._channel = channel
        self._timing = timing
        self._on_message = on_message
        self._on_begin = on_begin
        self._on_lost = on_lost
        self._failures = 0

    async def run(self) -> None:
        """Subscribe, and reconnect after failures with growing random pauses, until cancelled."""
        while True:
            try:
                await self._subscribe()
            except Exception as error:
                if self._failures == 0:
                    fields = {"kind": type(error).__name__, "error": str(error)}
                    log.warning("redis_subscriber.disconnected", channel=self._channel, **fields)
                self._on_lost()
                self._failures += 1
            longest = self._timing.pause_seconds(self._failures)
            await asyncio.sleep(random.uniform(longest / 2, longest))  # noqa: S311

    async def _subscribe(self) -> None:
        seconds = self._timing.connect_seconds
        client = await make_client(self._redis_url, seconds)
        from redis.exceptions import RedisError  # Slow, and imported by the line above.

        pubsub = client.pubsub()
        try:
            await wait_at_most(seconds, pubsub.subscribe(self._channel))
            await self._listen(pubsub)
        finally:
            with contextlib.suppress(RedisError, OSError):
                await wait_at_most(seconds, pubsub.aclose())  # type: ignore[no-untyped-call]
                await wait_at_most(seconds, client.aclose())

    async def _listen(self, pubsub: "PubSub") -> None:
        # A frozen server or a cut line looks like a server without messages, so send PINGs.
        pinged, silence = False, self._timing.silence_seconds
        while True:
            message = await pubsub.get_message(timeout=silence)
            if message is not None:
                pinged = False
                self._handle_message(message)
            elif pinged:
                raise TimeoutError(f"silent for {2 * silence:g} s")
            else:
                pinged = True
                await wait_at_most(self._timing.connect_seconds, pubsub.ping())

    def _handle_message(self, message: dict[str, object]) -> None:
        data = message["data"]
        if message["type"] == "subscribe":
            if self._failures:
                log.info("redis_subscriber.reconnected", channel=self._channel)
            self._failures = 0
            self._on_begin()
        elif message["type"] == "message" and isinstance(data, bytes):
            self._on_message(data)
