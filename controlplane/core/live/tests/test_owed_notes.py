"""Notifications that Redis didn't accept are sent as soon as it does."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import redis

from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE, WAKE_CHANNEL
from controlplane.core.wakeups import _Waker
from controlplane.dataplane.tests.lines import Line, background
from controlplane.supervisor.redis import find_program
from controlplane.tests.installation import free_port, wait_until

PAUSE_SECONDS = 0.1
SEVERAL_PAUSES = 0.35


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """Yield the port of a separate Redis, because all tests would receive what is published."""
    port = free_port()
    arguments = [find_program(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _answers(port), 10)
            yield port
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    with suppress(redis.ConnectionError), redis.Redis(port=port) as client:
        return bool(client.ping())
    return False


@pytest.fixture
def line(server, settings) -> Iterator[Line]:
    with background() as loop:
        one = Line(loop, "127.0.0.1", server)
        settings.REDIS_URL = f"redis://127.0.0.1:{one.port}/0"
        yield one


@contextmanager
def listening(port: int) -> Iterator[Any]:
    with redis.Redis(port=port) as client, client.pubsub() as pubsub:
        pubsub.subscribe(LIVE_CHANNEL)
        pubsub.get_message(timeout=1)
        yield pubsub


def misses(pubsub: Any, seconds: float) -> int:
    """Count the notices of missed notifications within some seconds."""
    found, ends = 0, time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        message = pubsub.get_message(timeout=left)
        found += message is not None and message["data"] == MISSED_NOTE
    return found


def is_missed_once(pubsub: Any) -> bool:
    """Wait for the notice of missed notifications; return True if it comes only once."""
    wait_until(lambda: misses(pubsub, 0.05) == 1, 10)
    return misses(pubsub, SEVERAL_PAUSES) == 0


def test_note_that_was_lost_is_owed_and_said_without_another_publish(line, server):
    waker = _Waker(PAUSE_SECONDS)
    with listening(server) as pubsub:
        line.cut()
        waker.publish(LIVE_CHANNEL, b"a note")
        waker.publish(LIVE_CHANNEL, b"another, in the pause after the failure")
        line.mend()

        assert is_missed_once(pubsub)


def test_debt_is_kept_for_as_long_as_redis_is_away_and_a_later_one_is_said_too(line, server):
    waker = _Waker(PAUSE_SECONDS)
    with listening(server) as pubsub:
        for _ in range(2):
            line.cut()
            waker.publish(LIVE_CHANNEL, b"a note")
            assert misses(pubsub, SEVERAL_PAUSES) == 0

            line.mend()

            assert is_missed_once(pubsub)


def test_lost_wake_up_is_not_owed(line, server):
    waker = _Waker(PAUSE_SECONDS)
    with listening(server) as pubsub:
        line.cut()
        waker.publish(WAKE_CHANNEL, "switches")
        line.mend()

        assert misses(pubsub, SEVERAL_PAUSES) == 0
