"""Consumers and handlers of tests."""

from switchgear.dlq import Consumer
from tests.dlq.streams import GROUP


def consumer_of(stream, handler, client=None, **terms):
    arguments = {"consumer": "w1", "backoff_seconds": 0, "wait_seconds": 0.05, **terms}
    return Consumer(
        redis=client or stream.redis, handler=handler, stream=stream.name, group=GROUP, **arguments
    )


def failing(message):
    raise ValueError("no such order")
