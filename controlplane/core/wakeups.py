"""Redis messages that wake subscribers after a change; if lost, they act at their next poll."""

import functools
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
FAILURE_NOTICE = (
    "Redis does not respond. The change is saved; services receive it with their next poll."
)

log = structlog.get_logger(__name__)


class _Waker:
    """A publisher of Redis messages; after a failure it drops all messages for a while.

    Subscribers can't notice a dropped message. So a thread tells those of the live channel, once
    Redis is reachable again, that they missed something.
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
        self._has_loss = False
        self._is_reporting = False

    def publish(self, channel: str, text: str | bytes) -> None:
        if time.monotonic() >= self._silent_until:
            try:
                self._client.publish(channel, text)
            except redis.RedisError as error:
                self._silent_until = time.monotonic() + self._pause
                _handle_failure(channel, error)
            else:
                return
        if channel == LIVE_CHANNEL:
            self._schedule_loss_report()

    def _schedule_loss_report(self) -> None:
        with self._lock:
            self._has_loss = True
            if self._is_reporting:
                return
            self._is_reporting = True
        threading.Thread(target=self._report_losses, daemon=True, name="wake-owes").start()

    def _report_losses(self) -> None:
        while self._check_loss():
            time.sleep(self._pause)
            with self._lock:
                self._has_loss = False  # Losses from here on must be reported again.
            try:
                self._client.publish(LIVE_CHANNEL, MISSED_NOTE)
            except redis.RedisError:
                with self._lock:
                    self._has_loss = True

    def _check_loss(self) -> bool:
        with self._lock:  # Without a loss the reporting thread ends.
            self._is_reporting = self._has_loss
            return self._has_loss


@functools.cache
def _get_waker() -> _Waker:
    return _Waker()


# A fork copies no threads and must not resend.
os.register_at_fork(after_in_child=_get_waker.cache_clear)
_report: Callable[[str], object] | None = None
_has_reported = False


def wake(topic: str) -> None:
    """Make subscribers read `topic` again, such as `degradation`, after the transaction commits."""
    publish_on_commit(WAKE_CHANNEL, topic)


def publish_on_commit(channel: str, text: str | bytes) -> None:
    """Publish on a Redis channel after the current transaction commits; the message may be lost."""
    transaction.on_commit(lambda: _get_waker().publish(channel, text), robust=True)


@contextmanager
def report_failures_to(report: Callable[[str], object]) -> Iterator[None]:
    """Context manager: call `report` with a notice if a message of the block can't be published.

    Only the first failure is reported, and none is logged.
    """
    global _report, _has_reported
    _report, _has_reported = report, False
    try:
        yield
    finally:
        _report = None


def _handle_failure(channel: str, error: redis.RedisError) -> None:
    global _has_reported
    if _report is None:
        log.warning("wakeup.failed", channel=channel, error=str(error), pause_seconds=PAUSE_SECONDS)
    elif not _has_reported:
        _has_reported = True
        _report(FAILURE_NOTICE)
