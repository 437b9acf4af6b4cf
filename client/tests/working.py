"""Consumers of a test, and waiting for what they do."""

import time

from switchgear.dlq import Consumer
from tests.streams import GROUP


def consumer_of(stream, handler, client=None, **terms):
    given = {"consumer": "w1", "backoff_seconds": 0, "wait_seconds": 0.05, **terms}
    return Consumer(
        redis=client or stream.redis, handler=handler, stream=stream.name, group=GROUP, **given
    )


def failing(message):
    raise ValueError("no such order")


def until_it_is(holds):
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.01)
