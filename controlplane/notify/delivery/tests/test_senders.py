"""Many destinations, few threads: all are served, and no thread holds a database connection."""

import socket
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery import claims, sender_pool
from controlplane.notify.delivery.sender_pool import MAX_FOR_SLOW, MAX_THREADS, SenderPool
from controlplane.notify.transports import connections

from .message_samples import create_message
from .outbox_helpers import announce, nobody_sends, sweep, wait_until


class Receivers:
    """A transport that records destinations; those named `hang…` block until released."""

    def __init__(self, each=1):
        self.sent = []
        self.at_once = self.most_at_once = 0
        self.left = Counter()
        self.each = each
        self.let_go = threading.Event()
        self._lock = threading.Lock()

    def send(self, destination):
        with self._lock:
            if self.left[destination] >= self.each:
                return None
            self.left[destination] += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        if destination.startswith("hang"):
            self.let_go.wait(10)
        with self._lock:
            self.at_once -= 1
            self.sent.append(destination)
        return 0.0


@pytest.fixture
def ended():
    yield
    until_quiet()


def until_quiet():
    ends = time.monotonic() + 15
    while not nobody_sends():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.usefixtures("ended")
def test_no_more_threads_than_the_most_however_many_hang():
    receivers = Receivers()
    pool = SenderPool(receivers.send)

    for number in range(115):
        assert pool.serve(f"hang{number}")
        assert not pool.serve(f"hang{number}")

    time.sleep(0.2)
    assert receivers.most_at_once == MAX_THREADS
    receivers.let_go.set()
    until_quiet()
    assert len(set(receivers.sent)) == 115


@pytest.mark.usefixtures("ended")
def test_what_hangs_leaves_threads_to_what_does_not(monkeypatch):
    monkeypatch.setattr(sender_pool, "SLOW_SECONDS", 0.05)
    receivers = Receivers(each=2)
    pool = SenderPool(receivers.send)
    for number in range(40):
        pool.serve(f"hang{number}")
    time.sleep(0.2)
    receivers.let_go.set()
    until_quiet()
    receivers.let_go.clear()
    receivers.left.clear()
    receivers.sent.clear()

    pool._slow.update(f"hang{number}" for number in range(40))
    for number in range(40):
        pool.serve(f"hang{number}")
    time.sleep(0.1)
    assert receivers.at_once == MAX_FOR_SLOW
    pool.serve("well")

    ends = time.monotonic() + 2
    while receivers.sent.count("well") < 2:
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert receivers.at_once == MAX_FOR_SLOW
    receivers.let_go.set()
    until_quiet()
    assert len(set(receivers.sent)) == 41


@pytest.mark.usefixtures("ended")
def test_where_much_waits_it_is_sent_in_turn_with_others(monkeypatch):
    monkeypatch.setattr(sender_pool, "MAX_THREADS", 1)
    receivers = Receivers(each=5)
    pool = SenderPool(receivers.send)
    for name in ("hang", "a", "b", "c"):
        pool.serve(name)
    receivers.let_go.set()

    until_quiet()

    assert Counter(receivers.sent) == {"hang": 5, "a": 5, "b": 5, "c": 5}
    assert receivers.sent[1:4] == ["a", "b", "c"]


@pytest.mark.usefixtures("ended")
def test_a_sender_that_breaks_takes_no_thread_with_it(caplog):
    def broken(destination):
        raise ValueError(destination)

    pool = SenderPool(broken)

    for _ in range(MAX_THREADS + 3):
        pool.serve("a")
        until_quiet()

    assert not pool.is_busy()
    assert "outbox.sender_failed" in caplog.text


@pytest.mark.usefixtures("ended")
def test_who_ends_begins_nothing_more():
    receivers = Receivers()
    pool = SenderPool(receivers.send)
    for number in range(MAX_THREADS + 5):
        pool.serve(f"hang{number}")
    time.sleep(0.1)
    assert not pool.finish(0.1)
    receivers.let_go.set()

    assert pool.finish(5)
    assert len(receivers.sent) == MAX_THREADS
    assert not pool.serve("another")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_pace", "ended")
def test_while_receivers_hang_nobody_holds_a_connection(registered):
    hook = Hanging()
    registered("hook", hook)
    announce(to=[f"hook:{number}" for number in range(30)])
    before = connected()

    sweep()

    wait_until(lambda: hook.at_once == MAX_THREADS)
    wait_until(lambda: connected() <= before)
    hook.let_go.set()
    wait_until(lambda: not OutboxMessage.objects.exclude(state="sent").exists(), 15)
    until_quiet()
    wait_until(lambda: connected() <= before)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_pace", "ended")
def test_while_slack_hangs_nobody_holds_a_connection(by_bot):
    by_bot.always = "hang"
    announce(to=["slack", *(f"slack:C000{number}" for number in range(5))], subject="episode:1")
    before = connected()

    sweep()

    wait_until(lambda: len(by_bot.requests) == 6)
    wait_until(lambda: connected() <= before)
    by_bot.closing.set()
    until_quiet()
    OutboxMessage.objects.update(state="failed")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("ended")
def test_while_a_mail_server_hangs_nobody_holds_a_connection(settings):
    with socket.create_server(("127.0.0.1", 0)) as server:  # Connects, and says nothing.
        port = server.getsockname()[1]
        settings.EMAIL = replace(settings.EMAIL, host="127.0.0.1", port=port, security="")
        announce(to=["email:kim@example.org"])
        before = connected()

        sweep()

        line, _ = server.accept()
        wait_until(lambda: connected() <= before)
        server.close()  # Else the next attempt would hang, too.
        line.close()
        until_quiet()
    OutboxMessage.objects.update(state="failed")


@pytest.mark.django_db
def test_who_waited_longest_is_served_first():
    for name in ("slack", "slack:C1", "slack:C2"):
        create_message("pending", name)
    for minutes, to in enumerate(("slack:C1", "slack", "slack:C2")):
        waits = OutboxMessage.objects.filter(destination=to)
        waits.update(next_attempt_at=db_now() - (3 - minutes) * timedelta(minutes=1))

    assert claims.due_destinations(db_now()) == ["slack:C1", "slack", "slack:C2"]


def connected():
    """Return the number of sessions; one that was closed ends a moment later."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return cursor.fetchone()[0]


class Hanging:
    """A transport that queries the database, then waits for another server."""

    def __init__(self):
        self.let_go = threading.Event()
        self.at_once = 0
        self._lock = threading.Lock()

    def reaches(self, destination):
        return True

    def secrets(self):
        return []

    def send(self, message):
        assert OutboxMessage.objects.filter(pk=message.pk).exists()
        connections.release_connection()
        with self._lock:
            self.at_once += 1
        assert self.let_go.wait(20)
