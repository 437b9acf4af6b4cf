"""Wake-ups through Redis: a hint that something changed. Losing one costs a second, never state."""

import time

import redis
import structlog
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from controlplane.core.wire import LIVE_CHANNEL, MISSED_NOTE, WAKE_CHANNEL

PAUSE_SECONDS = 1.0

log = structlog.get_logger(__name__)


class _Waker:
    """Publishes with short timeouts, and leaves Redis alone for a while after a failure.

    Whoever listens can't notice that a note never came: it is said as soon as something goes out.
    """

    def __init__(self) -> None:
        self._client = redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=0.25,
            socket_connect_timeout=0.25,
            retry=Retry(NoBackoff(), 0),
        )
        self._silent_until = 0.0
        self._owes_note = False

    def publish(self, channel: str, text: str | bytes) -> None:
        if time.monotonic() < self._silent_until:
            self._owes_note |= channel == LIVE_CHANNEL
            return
        try:
            if self._owes_note:
                self._client.publish(LIVE_CHANNEL, MISSED_NOTE)
                self._owes_note = False
            self._client.publish(channel, text)
        except redis.RedisError as error:
            self._silent_until = time.monotonic() + PAUSE_SECONDS
            self._owes_note |= channel == LIVE_CHANNEL
            log.warning(
                "wake.failed", channel=channel, error=str(error), pause_seconds=PAUSE_SECONDS
            )


_waker: _Waker | None = None


def wake(topic: str) -> None:
    """Tell whoever listens that `topic` changed, once the current transaction has committed."""
    publish_on_commit(WAKE_CHANNEL, topic)


def publish_on_commit(channel: str, text: str | bytes) -> None:
    """Publish on a channel of Redis once the current transaction has committed; may be lost."""
    transaction.on_commit(lambda: _publish(channel, text), robust=True)


def _publish(channel: str, text: str | bytes) -> None:
    global _waker
    if _waker is None:
        _waker = _Waker()
    _waker.publish(channel, text)
