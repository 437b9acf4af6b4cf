"""Notes that Redis did not take are owed, and said as soon as it takes them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from django.conf import settings as given

from controlplane.core.wake import _Waker
from controlplane.core.wire import LIVE_CHANNEL, MISSED_NOTE, WAKE_CHANNEL
from controlplane.dataplane.tests.lines import Line, background


@pytest.fixture
def line(settings) -> Iterator[Line]:
    url = urlsplit(settings.REDIS_URL)
    login, at, _ = url.netloc.rpartition("@")
    with background() as loop:
        one = Line(loop, url.hostname or "127.0.0.1", url.port or 6379)
        settings.REDIS_URL = urlunsplit(url._replace(netloc=f"{login}{at}127.0.0.1:{one.port}"))
        yield one


@contextmanager
def listening(url: str) -> Iterator[Any]:
    with redis.Redis.from_url(url) as client, client.pubsub() as pubsub:
        pubsub.subscribe(LIVE_CHANNEL)
        pubsub.get_message(timeout=1)
        yield pubsub


def misses(pubsub: Any, seconds: float) -> int:
    """How often it is said that notes were missed."""
    found, ends = 0, time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        message = pubsub.get_message(timeout=left)
        found += message is not None and message["data"] == MISSED_NOTE
    return found


URL = given.REDIS_URL


def test_note_that_was_lost_is_owed_and_said_without_another_publish(line):
    waker = _Waker()
    with listening(URL) as pubsub:
        line.cut()
        waker.publish(LIVE_CHANNEL, b"a note")
        waker.publish(LIVE_CHANNEL, b"another, in the pause after the failure")
        line.mend()

        assert misses(pubsub, 2.5) == 1


def test_debt_is_kept_for_as_long_as_redis_is_away_and_a_later_one_is_said_too(line):
    waker = _Waker()
    with listening(URL) as pubsub:
        for _ in range(2):
            line.cut()
            waker.publish(LIVE_CHANNEL, b"a note")
            assert misses(pubsub, 1.5) == 0

            line.mend()

            assert misses(pubsub, 2.5) == 1


def test_lost_wake_up_is_not_owed(line):
    waker = _Waker()
    with listening(URL) as pubsub:
        line.cut()
        waker.publish(WAKE_CHANNEL, "switches")
        line.mend()

        assert misses(pubsub, 2) == 0
