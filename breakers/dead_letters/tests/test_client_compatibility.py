"""Compatibility of the client library's dead letters with the console, both ways."""

import pytest

from breakers.dead_letters.redis_servers import reader, servers
from breakers.dead_letters.removals import actions
from breakers.tests.fleet import NOW, SECOND
from controlplane.core.actors import system_actor
from switchgear.dlq import Consumer, Names

pytestmark = pytest.mark.django_db
ADA = system_actor("shell:ada")
WHY = "the vendor is back since 10:20"


def consumer_of(letters, handler):
    return Consumer(
        redis=servers.get_server("default").client,
        handler=handler,
        stream=f"{letters.prefix}:events",
        group="synapse",
        names=Names(f"{letters.prefix}:dlq:{{stream}}", f"{letters.prefix}:{{stream}}"),
        backoff_seconds=0,
    )


def failing(message):
    raise LookupError("no order 17")


def only_letter(letters):
    [entry] = reader.read_page("default", letters.name()).entries
    return entry


def test_a_message_that_failed_is_read_with_all_that_is_known_of_it(letters):
    original = letters.redis.xadd(f"{letters.prefix}:events", {"order": b"\xff17"}).decode()

    consumer_of(letters, failing).step()

    entry = only_letter(letters)
    assert entry.original == ((b"order", b"\xff17"),)
    assert (entry.error_type, entry.error) == ("LookupError", "no order 17")
    assert (entry.group, entry.attempts, entry.original_id) == ("synapse", 3, original)
    assert abs(entry.failed_at.timestamp() * 1000 - int(entry.id.split("-")[0])) < 5000


def test_a_retried_letter_comes_back_with_its_history_and_is_handled_at_last(letters):
    received = []
    letters.redis.xadd(f"{letters.prefix}:events", {"order": "17"})
    consumer_of(letters, failing).step()
    first = only_letter(letters)
    arguments = {"stream": letters.stream(), "reason": WHY, "actor": ADA}

    actions.retry(entry_id=first.id, **arguments, now=NOW)
    consumer_of(letters, failing).step()
    second = only_letter(letters)
    actions.retry(entry_id=second.id, **arguments, now=NOW + SECOND)
    consumer_of(letters, received.append).step()

    assert (second.retry_of, second.retries) == (first.id, 1)
    [message] = received
    assert message.fields == {"order": "17", "dlq_retry_of": second.id, "dlq_retry_count": "2"}
    assert letters.redis.xlen(letters.name()) == 0
