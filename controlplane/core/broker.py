"""Redis health: reachability and the number of messages in each queue."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.core import ticks
from controlplane.core.threads import Bounded

SECONDS = 0.5
KEY_PREFIX = "switchgear:"
"""Prefix of queue names, set by the broker's library."""


def ping() -> None:
    """Raises `RedisError` if Redis does not answer in time."""
    with _client() as client:
        client.ping()


def queue_names() -> list[str]:
    return sorted({tick.queue for tick in ticks.registered().values()})


def depths() -> Mapping[str, int]:
    """Messages that wait, by queue. Raises `RedisError` or TimeoutError."""
    return _depths.answer()


@contextmanager
def _client() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=SECONDS,
        socket_connect_timeout=SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        yield client
    finally:
        client.close()


def _ask_depths() -> dict[str, int]:
    names = queue_names()
    with _client() as client, client.pipeline(transaction=False) as asked:
        for name in names:
            asked.llen(f"{KEY_PREFIX}{name}")
        return dict(zip(names, asked.execute(), strict=True))


_depths = Bounded(_ask_depths, seconds=SECONDS * 2)
