"""Listens for wake-ups on Redis. They save up to a second; without Redis nothing else changes."""

import asyncio
import random
from collections.abc import Callable

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from controlplane.core.wire import WAKE_CHANNEL
from controlplane.dataplane.deadlines import within

CONNECT_SECONDS = 2.0
SILENCE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 5.0

log = structlog.get_logger(__name__)


def pause_seconds(failures: int) -> float:
    """The longest pause after so many failed attempts in a row."""
    doublings = min(failures, 10)  # A float would overflow after hours without Redis.
    return min(0.2 * 2.0**doublings, LONGEST_PAUSE_SECONDS)


class Subscription:
    """Calls `on_wake` for each message, and once per connection for those missed before it.

    `on_state` is told whether the server answers, as often as that may have changed.

    A server that has said nothing for twice `silence_seconds`, not even to a PING, is given up.
    """

    def __init__(
        self,
        redis_url: str,
        on_wake: Callable[[], None],
        on_state: Callable[[bool], None] = lambda _reachable: None,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self._redis_url = redis_url
        self._on_wake = on_wake
        self._on_state = on_state
        self._silence_seconds = silence_seconds
        self._failures = 0

    async def run(self) -> None:
        """Supervise the subscription until cancelled; attempts grow apart, with jitter."""
        while True:
            try:
                await self._subscription()
            except Exception as error:
                if self._failures == 0:
                    log.warning(
                        "dataplane.wakeups_lost", kind=type(error).__name__, error=str(error)
                    )
                self._on_state(False)
                self._failures += 1
            longest = pause_seconds(self._failures)
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
            await within(CONNECT_SECONDS, pubsub.subscribe(WAKE_CHANNEL))
            await self._receive(pubsub)
        finally:
            await within(CONNECT_SECONDS, pubsub.aclose())  # type: ignore[no-untyped-call]
            await within(CONNECT_SECONDS, client.aclose())

    async def _receive(self, pubsub: PubSub) -> None:
        # A frozen server or a line cut without a word looks like one with nothing to say.
        pinged = False
        while True:
            message = await pubsub.get_message(timeout=self._silence_seconds)
            if message is not None:
                pinged = False
                self._heard(message["type"])
            elif pinged:
                raise RedisError(f"silent for {2 * self._silence_seconds:g} s")
            else:
                pinged = True
                await within(CONNECT_SECONDS, pubsub.ping())

    def _heard(self, kind: str) -> None:
        if kind == "subscribe":
            self._on_state(True)
            if self._failures:
                log.info("dataplane.wakeups_found")
            self._failures = 0
        if kind in {"subscribe", "message"}:
            self._on_wake()
