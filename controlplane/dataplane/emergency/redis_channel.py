"""Emergency orders on a Redis channel: a second way to other data planes, while Redis responds.

No request waits for Redis: data planes exchange the orders with each other, too.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

import structlog

from controlplane.core.async_redis import make_client
from controlplane.core.protocol import ORDER_CHANNEL
from controlplane.core.redis_subscriber import RedisSubscriber, SubscriberTiming
from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.storage.order_journal import SIGNED_ORDER
from switches.emergency.orders import Order

PUBLISH_SECONDS = 2.0
MAX_WAITING = 5000
TIMING = SubscriberTiming(connect_seconds=2.0, silence_seconds=5.0, longest_pause_seconds=5.0)

Receive = Callable[[Iterable[str], str], Awaitable[object]]
"""Verifies, stores and serves signed orders; the second argument is their source, for the log."""

log = structlog.get_logger(__name__)


class RedisChannel:
    """Publishes accepted orders, signed with `key`, and passes those of others to `receive`."""

    def __init__(self, redis_url: str, key: bytes, receive: Receive) -> None:
        self._redis_url = redis_url
        self._key = key
        self._receive = receive
        self._outgoing: deque[bytes] = deque(maxlen=MAX_WAITING)
        self._incoming: deque[bytes] = deque(maxlen=MAX_WAITING)
        self._has_outgoing = asyncio.Event()
        self._has_incoming = asyncio.Event()
        self._is_failing = False

    def publish(self, orders: Iterable[Order]) -> None:
        """Publish orders soon, if Redis responds."""
        self._outgoing.extend(SIGNED_ORDER.sign(order, self._key) for order in orders)
        self._has_outgoing.set()

    async def run(self) -> None:
        """Publish and receive orders, until canceled."""
        subscriber = RedisSubscriber(
            self._redis_url,
            ORDER_CHANNEL,
            TIMING,
            on_message=self._accept,
            on_begin=lambda: None,
            on_lost=lambda: None,
        )
        await asyncio.gather(subscriber.run(), self._publish(), self._receive_incoming())

    def _accept(self, message: bytes) -> None:
        self._incoming.append(message)
        self._has_incoming.set()

    async def _receive_incoming(self) -> None:
        while True:
            await self._has_incoming.wait()
            self._has_incoming.clear()
            texts = [message.decode(errors="replace") for message in self._incoming]
            self._incoming.clear()
            try:
                await self._receive(texts, "Redis")
            except Exception as error:
                log.error(
                    "emergency_order.not_received", kind=type(error).__name__, error=str(error)
                )

    async def _publish(self) -> None:
        while True:
            await self._has_outgoing.wait()
            self._has_outgoing.clear()
            signed = list(self._outgoing)
            self._outgoing.clear()
            try:
                await self._send(signed)
            except Exception as error:
                if not self._is_failing:
                    log.info("emergency_order.not_published", kind=type(error).__name__)
                self._is_failing = True
            else:
                self._is_failing = False

    async def _send(self, signed: Iterable[bytes]) -> None:
        client = await make_client(self._redis_url, PUBLISH_SECONDS)
        from redis.exceptions import RedisError  # Slow, and imported by the line above.

        try:
            for message in signed:
                await wait_at_most(PUBLISH_SECONDS, client.publish(ORDER_CHANNEL, message))
        finally:
            with contextlib.suppress(RedisError, OSError):
                await wait_at_most(PUBLISH_SECONDS, client.aclose())
