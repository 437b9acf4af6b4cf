"""Messages that somebody deletes while a worker is at them, and reads that fail half way."""

import asyncio

import pytest
import redis
import redis.asyncio

from switchgear.dlq import AsyncConsumer, dead_letter, exchanges
from tests.dlq.consumers import consumer_of, failing
from tests.dlq.streams import GROUP, URL


def deleted(stream, entry_id):
    """Delete a message as a producer's MAXLEN does; the group forgets it when Redis 7 claims it."""
    stream.redis.xdel(stream.name, entry_id)
    stream.redis.xack(stream.name, GROUP, entry_id)


def emptied(stream, entry_id):
    stream.redis.delete(stream.name)


@pytest.mark.parametrize("happens", [deleted, emptied])
def test_what_is_deleted_while_it_fails_is_a_dead_letter_as_the_worker_has_it(stream, happens):
    def handler(message):
        happens(stream, message.id)
        failing(message)

    entry_id = stream.add(order="17")
    consumer = consumer_of(stream, handler, attempts=1)

    consumer.step()

    assert stream.letter[b"order"] == b"17"
    assert stream.letter[b"dlq_original_id"] == entry_id.encode()
    assert consumer.counts.dead_lettered == 1


@pytest.mark.parametrize("happens", [deleted, emptied])
def test_with_asyncio_it_is_one_too(stream, happens):
    async def handler(message):
        happens(stream, message.id)
        failing(message)

    async def work():
        async with redis.asyncio.Redis.from_url(URL) as client:
            arguments = {"stream": stream.name, "group": GROUP, "attempts": 1}
            await AsyncConsumer(redis=client, handler=handler, **arguments).step()

    stream.add(order="17")

    asyncio.run(work())

    assert stream.letter[b"order"] == b"17"


def test_what_is_a_dead_letter_already_when_it_is_deleted_is_none_again(stream):
    def handler(message):
        arguments = {"entry_id": message.id, "error": "no", "attempts": 1}
        dead_letter(stream.redis, stream=stream.name, group=GROUP, **arguments)
        deleted(stream, message.id)
        failing(message)

    stream.add(order="17")
    consumer = consumer_of(stream, handler, attempts=1)

    consumer.step()

    assert stream.letter[b"dlq_error"] == b"no"
    assert consumer.counts.taken == 1


def test_what_somebody_else_acknowledged_meanwhile_is_none(stream):
    def handler(message):
        stream.redis.xack(stream.name, GROUP, message.id)
        failing(message)

    stream.add()

    consumer_of(stream, handler, attempts=1).step()

    assert stream.letters == []


def test_holding_a_deleted_message_leaves_it_pending(stream):
    entry_id = stream.add()
    stream.given_to("w1")
    stream.redis.xdel(stream.name, entry_id)
    consumer = consumer_of(stream, failing)

    exchanges.run_exchange(stream.redis, exchanges.extend_claims(consumer, [entry_id]))

    assert [one[0] for one in stream.pending] == [entry_id]


class CutOff:
    """A client whose line breaks whenever new messages are asked for."""

    def __init__(self, client):
        self._client = client

    def execute_command(self, *args, **options):
        if str(args[0]).startswith("XREADGROUP"):
            raise redis.ConnectionError("the line broke")
        return self._client.execute_command(*args, **options)


def test_what_was_taken_over_before_the_line_breaks_is_handled(stream):
    messages = []
    stream.add()
    [entry_id] = stream.given_to("dead")
    stream.idle(entry_id, "dead")
    consumer = consumer_of(stream, messages.append, CutOff(stream.redis))

    with pytest.raises(redis.ConnectionError):
        consumer.step()

    assert [one.id for one in messages] == [entry_id]
    assert (stream.pending, consumer.counts.handled) == ([], 1)
