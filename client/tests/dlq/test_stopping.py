"""Messages of a consumer that is stopped, or ends midway."""

import threading

import pytest

from tests.dlq.consumers import consumer_of, failing
from tests.dlq.streams import GROUP
from tests.wait_helpers import wait_until


def test_a_stop_in_a_pause_frees_the_message_at_once(stream):
    consumer = consumer_of(stream, failing, backoff_seconds=3600, batch=2)
    ids = [stream.add(), stream.add()]
    working = threading.Thread(target=consumer.run)
    working.start()
    wait_until(lambda: consumer.counts.failed_attempts == 1)

    consumer.stop()
    working.join(5)
    assert not working.is_alive()
    messages = []
    other = consumer_of(stream, messages.append, consumer="w2")
    for _ in range(3):
        other.step()

    assert [(one.id, one.deliveries) for one in messages] == [(one, 1) for one in ids]
    assert stream.letters == []


def test_a_stopped_consumer_without_messages_leaves_the_group(stream):
    stream.add()
    consumer = consumer_of(stream, lambda message: consumer.stop())

    consumer.run()

    assert stream.redis.xinfo_consumers(stream.name, GROUP) == []
    assert stream.pending == []


def test_a_message_that_ends_its_worker_counts_as_delivered(stream):
    def ending(message):
        raise SystemExit(1)

    stream.add()
    stream.add()

    with pytest.raises(SystemExit):
        consumer_of(stream, ending).run()

    assert [one[2] for one in stream.pending] == [1, 0]
