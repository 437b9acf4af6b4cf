"""Wake-ups through Redis: a hint that something changed. Losing one costs a second, never state."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis
import structlog
from django.conf import settings
from django.db import transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from .protocol import LIVE_CHANNEL, MISSED_NOTE, WAKE_CHANNEL

PAUSE_SECONDS = 1.0
PLAIN = "Redis does not answer. What was done stands; services hear of it by their next poll."

log = structlog.get_logger(__name__)


class _Waker:
    """A publisher with short timeouts that pauses after a failure.

    Subscribers can't notice a missing notification, so a thread sends it as soon as Redis accepts
    it, whether or not anything else is published.
    """

    def __init__(self, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._pause = pause_seconds
        self._client = redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=0.25,
            socket_connect_timeout=0.25,
            retry=Retry(NoBackoff(), 0),
        )
        self._silent_until = 0.0
        self._lock = threading.Lock()
        self._owes = False
        self._settles = False

    def publish(self, channel: str, text: str | bytes) -> None:
        if time.monotonic() >= self._silent_until:
            try:
                self._client.publish(channel, text)
            except redis.RedisError as error:
                self._silent_until = time.monotonic() + self._pause
                _failed(channel, error)
            else:
                return
        if channel == LIVE_CHANNEL:
            self._owe()

    def _owe(self) -> None:
        with self._lock:
            self._owes = True
            if self._settles:
                return
            self._settles = True
        threading.Thread(target=self._settle, daemon=True, name="wake-owes").start()

    def _settle(self) -> None:
        while self._is_owing():
            time.sleep(self._pause)
            with self._lock:
                self._owes = False  # Losses from here on must be reported again.
            try:
                self._client.publish(LIVE_CHANNEL, MISSED_NOTE)
            except redis.RedisError:
                with self._lock:
                    self._owes = True

    def _is_owing(self) -> bool:
        """Return True if a wake-up is still owed; if not, the sending thread may end."""
        with self._lock:
            self._settles = self._owes
            return self._owes


_waker: _Waker | None = None
_say: Callable[[str], object] | None = None
_said = False


def wake(topic: str) -> None:
    """Notify subscribers that `topic` changed, after the current transaction commits."""
    publish_on_commit(WAKE_CHANNEL, topic)


def publish_on_commit(channel: str, text: str | bytes) -> None:
    """Publish on a channel of Redis once the current transaction has committed; may be lost."""
    transaction.on_commit(lambda: _publish(channel, text), robust=True)


@contextmanager
def said_plainly(say: Callable[[str], object]) -> Iterator[None]:
    """Report trouble through `say`, as one sentence, once, instead of through the log.

    Used by management commands.
    """
    global _say, _said
    _say, _said = say, False
    try:
        yield
    finally:
        _say = None


def _failed(channel: str, error: redis.RedisError) -> None:
    global _said
    if _say is None:
        log.warning("wake.failed", channel=channel, error=str(error), pause_seconds=PAUSE_SECONDS)
    elif not _said:
        _said = True
        _say(PLAIN)


def _begin_anew() -> None:
    """Start with a new waker after a fork, which copies no threads and must not resend."""
    global _waker
    _waker = None


os.register_at_fork(after_in_child=_begin_anew)


def _publish(channel: str, text: str | bytes) -> None:
    global _waker
    if _waker is None:
        _waker = _Waker()
    _waker.publish(channel, text)
