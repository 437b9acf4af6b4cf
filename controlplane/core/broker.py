"""Reachability of Redis, Celery's message broker, and the lengths of its queues."""

from collections.abc import Mapping

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.core import ticks
from controlplane.core.threads import BoundedCall

SECONDS = 0.5
KEY_PREFIX = "switchgear:"
"""Prefix of the queues' Redis keys, set by Celery's transport."""


def ping() -> None:
    """Raise `RedisError` if Redis does not respond in time."""
    with _make_client() as client:
        client.ping()


def queue_names() -> list[str]:
    return sorted({tick.queue for tick in ticks.list_ticks().values()})


def queue_lengths() -> Mapping[str, int]:
    """Return the number of waiting messages by Celery queue; raise `RedisError` or TimeoutError."""
    queue_names()  # Imports all ticks the first time, which must not use up the time of Redis.
    return _queue_lengths.result()


def _make_client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=SECONDS,
        socket_connect_timeout=SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


def _read_queue_lengths() -> dict[str, int]:
    names = queue_names()
    with _make_client() as client, client.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.llen(f"{KEY_PREFIX}{name}")
        return dict(zip(names, pipeline.execute(), strict=True))


_queue_lengths = BoundedCall(_read_queue_lengths, seconds=SECONDS * 2)
