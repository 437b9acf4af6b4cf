"""A consumer comes to an end with every message: handled, or a dead letter, once."""

import threading
import time

import pytest
import redis

from switchgear import journal
from switchgear.dlq import Consumer
from switchgear.testing import Console, no_wait
from tests.dlq.consumers import consumer_of, failing
from tests.dlq.streams import GROUP, URL
from tests.wait_helpers import wait_until


def test_what_is_handled_is_acknowledged(stream):
    messages = []
    ids = [stream.add(number=number) for number in range(3)]
    consumer = consumer_of(stream, lambda message: messages.append((message.id, message.fields)))

    assert consumer.step() == 3

    assert messages == [(ids[number], {"number": str(number)}) for number in range(3)]
    assert (consumer.counts.handled, stream.pending, stream.letters) == (3, [], [])


@pytest.mark.parametrize("options", [{"decode_responses": True}, {"protocol": 3}, {"protocol": 2}])
def test_a_message_is_the_same_whatever_the_client_decodes(stream, options):
    messages = []
    stream.redis.execute_command("XADD", stream.name, "*", "n", b"\xff", "n", "é")
    with redis.Redis.from_url(URL, **options) as client:
        consumer_of(stream, messages.append, client).step()

    [message] = messages
    assert message.pairs == ((b"n", b"\xff"), (b"n", "é".encode()))
    assert message.fields == {"n": "é"}
    assert message.value("n") == b"\xff"


def test_what_fails_three_times_is_a_dead_letter(stream):
    attempts = []

    def handler(message):
        attempts.append(message.attempt)
        failing(message)

    entry_id = stream.add(order="17")
    consumer = consumer_of(stream, handler)

    consumer.step()

    assert attempts == [1, 2, 3]
    assert stream.letter[b"order"] == b"17"
    assert stream.letter[b"dlq_attempts"] == b"3"
    assert stream.letter[b"dlq_original_id"] == entry_id.encode()
    assert (stream.pending, consumer.counts.dead_lettered) == ([], 1)


def test_a_dead_letter_is_noted_without_what_the_message_says(stream):
    noted = []
    end = journal.add_hook(noted.append)
    stream.add(order="secret")

    consumer_of(stream, failing).step()
    end()

    [entry] = noted
    assert (entry.name, entry.about) == ("dlq_message_added", stream.dead)
    assert entry.fields["attempts"] == 3
    assert "secret" not in str(entry)


def test_what_succeeds_at_last_is_none(stream):
    def handler(message):
        if message.attempt < 3:
            failing(message)

    stream.add()
    consumer = consumer_of(stream, handler)

    consumer.step()

    assert (consumer.counts.handled, consumer.counts.failed_attempts) == (1, 2)
    assert (stream.pending, stream.letters) == ([], [])


def test_a_permanent_failure_is_not_tried_again(stream):
    stream.add()

    consumer_of(stream, failing, permanent=(ValueError,)).step()

    assert stream.letter[b"dlq_attempts"] == b"1"


def test_one_poisoned_message_does_not_stop_the_others(stream):
    messages = []

    def handler(message):
        if message.fields["n"] == "1":
            failing(message)
        messages.append(message.fields["n"])

    for number in range(3):
        stream.add(n=number)

    consumer_of(stream, handler).step()

    assert messages == ["0", "2"]
    assert stream.letter[b"n"] == b"1"


def test_what_a_dead_worker_left_is_taken_over_once_it_is_idle(stream):
    messages = []
    stream.add()
    [entry_id] = stream.given_to("dead")
    consumer = consumer_of(stream, messages.append)
    consumer.step()
    assert messages == []

    stream.idle(entry_id, "dead")
    consumer_of(stream, messages.append).step()

    assert [(one.id, one.deliveries) for one in messages] == [(entry_id, 2)]
    assert stream.pending == []


def test_what_killed_its_workers_is_a_dead_letter_without_being_tried(stream):
    messages = []
    stream.add()
    [entry_id] = stream.given_to("dead")
    stream.idle(entry_id, "dead", deliveries=3)

    consumer_of(stream, messages.append).step()

    assert messages == []
    assert stream.letter[b"dlq_error_type"] == b"switchgear.dlq.WorkersDied"
    assert stream.letter[b"dlq_attempts"] == b"3"
    assert stream.pending == []


def test_what_lost_its_content_is_counted_and_let_go(stream):
    messages = []
    kept, lost = stream.add(), stream.add()
    stream.given_to("dead", count=2)
    for entry_id in (kept, lost):
        stream.idle(entry_id, "dead")
    stream.redis.xdel(stream.name, lost)
    consumer = consumer_of(stream, messages.append)

    for _ in range(3):
        consumer.step()

    assert [one.id for one in messages] == [kept]
    assert (consumer.counts.vanished, stream.pending) == (1, [])


def test_what_is_taken_over_while_it_fails_is_no_dead_letter_of_ours(stream):
    def handler(message):
        stream.idle(message.id, "w2")
        failing(message)

    stream.add()
    consumer = consumer_of(stream, handler)

    consumer.step()

    assert (consumer.counts.taken, stream.letters) == (1, [])
    assert [one[1] for one in stream.pending] == ["w2"]


def test_what_takes_longer_than_the_idle_time_is_not_taken_over(stream):
    messages = []
    begun = threading.Event()

    def slow(message):
        begun.set()
        time.sleep(1.4)
        messages.append("slow")

    stream.add()
    first = consumer_of(stream, slow, idle_seconds=0.6)
    other = consumer_of(stream, lambda _: messages.append("other"), consumer="w2", idle_seconds=0.6)
    working = threading.Thread(target=first.step)
    working.start()
    assert begun.wait(10)
    while working.is_alive():
        other.step()
        time.sleep(0.05)

    assert messages == ["slow"]
    assert stream.pending == []


def test_an_emptied_redis_is_begun_again(stream):
    consumer = consumer_of(stream, lambda message: None)
    consumer.step()
    stream.redis.delete(stream.name)
    stream.add()

    consumer.step()
    consumer.step()

    assert consumer.counts.handled == 1


def test_what_redis_refuses_to_take_stays_pending_and_holds_up_nobody(stream):
    messages = []

    def handler(message):
        messages.append(message.fields["n"])
        if message.fields["n"] == "0":
            failing(message)

    stream.redis.set(stream.dead, "no stream")
    stream.add(n=0)
    stream.add(n=1)
    consumer = consumer_of(stream, handler, attempts=1)

    with no_wait():
        consumer.step()

    assert messages == ["0", "1"]
    assert len(stream.pending) == 1
    stream.redis.delete(stream.dead)


def test_many_consumers_give_each_message_to_one(stream):
    messages = []
    for number in range(200):
        stream.add(n=number)

    def handler(message):
        messages.append(message.id)
        if int(message.fields["n"]) % 10 == 0:
            failing(message)

    consumers = [consumer_of(stream, handler, consumer=f"w{n}", attempts=1) for n in range(4)]
    workers = [threading.Thread(target=one.run) for one in consumers]
    for worker in workers:
        worker.start()
    wait_until(
        lambda: sum(one.counts.handled + one.counts.dead_lettered for one in consumers) == 200
    )
    for one in consumers:
        one.stop()
    for worker in workers:
        worker.join(5)

    assert len(messages) == len(set(messages)) == 200
    assert (len(stream.letters), stream.pending) == (20, [])


@pytest.mark.parametrize(
    "terms",
    [
        {"attempts": 0},
        {"max_deliveries": 0},
        {"batch": 0},
        {"idle_seconds": 0},
        {"backoff_seconds": -1},
        {"consumer": ""},
        {"stream": "events"},
        {"dead_stream": "axiom:events"},
    ],
)
def test_what_can_not_be_is_refused_before_anything_runs(terms):
    given = {"stream": "axiom:events", "group": GROUP, **terms}

    with pytest.raises(ValueError, match=r"."):
        Consumer(redis=redis.Redis(), handler=failing, **given)


def test_refused_handler_keeps_the_message_until_it_may_run(stream):
    console = Console()
    console.engage("feature:orders")
    guard = console.client().guard(feature="orders")
    messages = []
    consumer = consumer_of(
        stream, guard(lambda message: messages.append(message.attempt)), refused_seconds=0.02
    )
    stream.add(order="17")
    thread = threading.Thread(target=consumer.run)
    thread.start()

    wait_until(lambda: consumer.counts.refused >= 5)
    before = list(messages)
    console.release("feature:orders")
    wait_until(lambda: consumer.counts.handled == 1)
    consumer.stop()
    thread.join()

    assert (before, messages) == ([], [1])
    assert (consumer.counts.failed_attempts, stream.letters, stream.pending) == (0, [], [])


def test_stopped_while_the_handler_is_refused_leaves_the_message_to_others(stream):
    console = Console()
    console.engage("feature:orders")
    guard = console.client().guard(feature="orders")
    consumer = consumer_of(stream, guard(failing))
    stream.add(order="17")
    thread = threading.Thread(target=consumer.run)
    thread.start()

    wait_until(lambda: consumer.counts.refused)
    consumer.stop()
    thread.join(10)

    assert not thread.is_alive()
    assert (stream.letters, len(stream.pending)) == ([], 1)
