"""Redis clients for asyncio, without the slow import of `redis.asyncio` at startup."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redis.asyncio import Redis


async def make_client(url: str, timeout_seconds: float) -> "Redis":
    """Return a Redis client whose calls time out after `timeout_seconds` and are not retried."""
    # In a thread, because the first import takes long and would block the event loop.
    await asyncio.to_thread(import_module, "redis.asyncio")
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return Redis.from_url(
        url,
        protocol=2,
        socket_connect_timeout=timeout_seconds,
        socket_timeout=timeout_seconds,
        retry=Retry(NoBackoff(), 0),
    )
