"""Delivery to a faulty server: each message is sent, or fails with a reason."""

import json
import logging
import time
from datetime import timedelta

import pytest
from django.db import OperationalError

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery import claims, sender
from controlplane.notify.delivery.sender_pool import SenderPool
from controlplane.notify.transports import outbound
from controlplane.notify.transports.failures import TransientFailure

from .conftest import TOKEN
from .fake_slack import fake_slack
from .outbox_helpers import announce, attempted, make_due, message, sweep, wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_pace", "ended")]
NO_TIME = timedelta(0)


def test_a_message_goes_out_once_and_is_sent(by_bot):
    announce()

    sweep()

    done = attempted()
    assert (done.state, done.attempts, done.last_error) == ("sent", 1, "")
    assert done.finished_at >= done.created_at
    sweep()
    assert len(by_bot.requests) == 1


def test_messages_go_out_in_the_order_of_their_writing(by_bot):
    announce(20)

    sweep()

    wait_until(lambda: not OutboxMessage.objects.filter(state="pending").exists())
    order = [text.split(":s")[1].split(" ")[0] for text in by_bot.texts]
    assert order == [str(number) for number in range(1, 21)]


@pytest.mark.parametrize("step", ["500", "ok:false internal_error", "reset"])
def test_a_passing_failure_is_tried_again_after_a_pause(by_bot, step):
    by_bot.script = [step]
    announce()
    before = db_now()

    sweep()

    tried = attempted()
    assert (tried.state, tried.attempts) == ("pending", 1)
    assert tried.last_error
    look_after = timedelta(seconds=claims.LOOK_AFTER_SECONDS)
    assert look_after <= tried.next_attempt_at - before < look_after + timedelta(seconds=2)
    make_due()
    sweep()
    assert attempted(2).state == "sent"
    assert by_bot.methods == ["chat.postMessage", "conversations.history", "chat.postMessage"]
    assert len(by_bot.messages) == 1


def test_a_surely_failed_attempt_is_tried_again_after_jitter_and_without_a_look(by_bot):
    by_bot.script = ["ok:false a_code_of_tomorrow"]
    announce()
    before = db_now()

    sweep()

    tried = attempted()
    ceiling = timedelta(seconds=sender.FIRST_PAUSE_SECONDS)
    assert NO_TIME <= tried.next_attempt_at - before < ceiling + timedelta(seconds=2)
    make_due()
    sweep()
    assert attempted(2).state == "sent"
    assert by_bot.methods == ["chat.postMessage", "chat.postMessage"]


@pytest.mark.parametrize("step", ["ok:false invalid_auth", "404"])
def test_a_hopeless_failure_is_final_at_once(by_bot, caplog, step):
    by_bot.always = step
    announce()

    sweep()

    tried = attempted()
    assert (tried.state, tried.attempts) == ("failed", 1)
    assert tried.finished_at
    assert tried.last_error
    wait_until(lambda: "outbox.failed" in errors(caplog))


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_while_sending_is_nobodys_mistake(registered, caplog):
    registered("hook", WithoutDatabase(""))
    announce(to=["hook:1"])

    sweep()

    assert attempted().state == "pending"
    assert "database" in message().last_error
    assert errors(caplog) == ""
    OutboxMessage.objects.update(state="failed")


def test_eight_attempts_and_then_it_is_failed(by_bot, caplog):
    by_bot.always = "500"
    announce()

    for attempt in range(1, 9):
        assert message().state == "pending"
        make_due()
        sweep()
        attempted(attempt)

    given_up = message()
    assert (given_up.state, given_up.attempts) == ("failed", 8)
    assert "HTTP 500" in given_up.last_error
    wait_until(lambda: "outbox.failed" in errors(caplog))
    sweep()
    time.sleep(0.1)
    assert len(by_bot.requests) == 8


def test_slack_that_hangs_is_given_up_on_in_time(by_bot, monkeypatch):
    monkeypatch.setattr(outbound, "READ_SECONDS", 0.3)
    by_bot.script = ["hang"]
    announce()

    sweep()

    tried = attempted()
    assert tried.state == "pending"
    assert "may have been delivered" in tried.last_error


@pytest.mark.django_db(transaction=True)
def test_two_sweepers_at_once_send_each_message_once(by_bot):
    by_bot.always = "slow 0.02"
    announce(30)
    processes = [SenderPool(sender.send_one) for _ in range(4)]

    for senders in processes:
        assert senders.serve("slack")

    wait_until(lambda: not OutboxMessage.objects.exclude(state="sent").exists(), 10)
    assert len(by_bot.requests) == 30
    assert len(set(by_bot.texts)) == 30


def test_a_sweep_leaves_a_destination_to_its_sender(by_bot):
    by_bot.always = "slow 0.3"
    announce(2)

    assert sweep() == 1
    assert sweep() == 0

    wait_until(lambda: not OutboxMessage.objects.exclude(state="sent").exists())
    assert len(by_bot.requests) == 2


@pytest.mark.django_db(transaction=True)
def test_a_destination_that_hangs_delays_no_other(by_bot, registered):
    with fake_slack() as other:
        registered("hook", Hook(other.url))
        by_bot.always = "hang"
        announce(5, to=["slack", "hook:1"])
        started = time.monotonic()

        for _ in range(20):  # The ticks of a minute, at speed.
            sweep()
        wait_until(
            lambda: OutboxMessage.objects.filter(destination="hook:1", state="sent").count() == 5
        )

        assert time.monotonic() - started < 2
        by_bot.closing.set()
        assert len(other.requests) == 5
        OutboxMessage.objects.filter(state="pending").update(state="failed")


def test_a_dead_senders_message_is_sent_again_after_its_lease(by_bot):
    announce()
    now = db_now()
    OutboxMessage.objects.update(
        attempts=1, fence=1, lease_until=now + timedelta(seconds=sender.LEASE_SECONDS)
    )

    assert sweep() == 0
    assert sender.start_sending(now + timedelta(seconds=29)) == 0
    OutboxMessage.objects.update(lease_until=now)
    assert sweep() == 1

    done = attempted(2)
    assert (done.state, done.attempts, done.fence) == ("sent", 2, 2)


@pytest.mark.django_db(transaction=True)
def test_a_sender_that_died_in_the_last_attempt_leaves_no_message_pending(by_bot, caplog):
    announce()
    OutboxMessage.objects.update(attempts=8, fence=8, lease_until=db_now())

    sweep()

    lost = message()
    assert (lost.state, lost.attempts, lost.fence) == ("failed", 8, 9)
    assert "may have been delivered" in lost.last_error
    assert by_bot.requests == []
    wait_until(lambda: "outbox.failed" in errors(caplog))


@pytest.mark.django_db(transaction=True)
def test_a_sender_that_lost_its_lease_records_nothing(by_bot):
    by_bot.script = ["slow 0.5"]
    announce()

    sweep()
    wait_until(lambda: by_bot.requests)
    OutboxMessage.objects.update(fence=7)  # Somebody else has claimed it since.

    time.sleep(0.8)
    assert (message().state, message().fence) == ("pending", 7)
    OutboxMessage.objects.update(state="failed")


def test_a_broken_transport_ends_as_a_failed_message_and_not_as_a_dead_sender(
    by_bot, registered, caplog
):
    registered("hook", InternalError())
    announce(to=["slack", "hook:1"])

    for attempt in range(1, 9):
        make_due()
        sweep()
        wait_until(lambda attempt=attempt: message(destination="hook:1").attempts == attempt)
        wait_until(lambda: message(destination="hook:1").lease_until is None)

    assert message(destination="hook:1").state == "failed"
    assert message(destination="slack").state == "sent"
    wait_until(lambda: "outbox.transport_broke" in errors(caplog))


@pytest.mark.parametrize("step", ["500", "ok:false invalid_auth", "reset", f"text 400 {TOKEN}"])
def test_no_secret_is_stored_or_logged(by_bot, registered, caplog, step):
    registered("hook", InternalError())
    by_bot.always = step
    announce(to=["slack", "hook:1"])

    sweep()

    wait_until(lambda: all(row.lease_until is None for row in OutboxMessage.objects.all()))
    wait_until(lambda: all(row.attempts for row in OutboxMessage.objects.all()))
    kept = json.dumps(list(OutboxMessage.objects.values()), default=str) + caplog.text
    assert TOKEN not in kept
    assert "hook-secret" not in kept


def errors(caplog):
    """Return the messages logged at ERROR, which may follow the recorded result by a moment."""
    return " ".join(r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR)


class Hook:
    """A minimal transport: one destination, one URL."""

    def __init__(self, url):
        self.url = url

    def reaches(self, destination):
        return True

    def secrets(self):
        return []

    def send(self, message):
        if outbound.post(self.url, {"text": message.event}, {}).status != 200:
            raise TransientFailure("no")


class WithoutDatabase(Hook):
    def send(self, message):
        raise OperationalError("the connection is lost")


class InternalError(Hook):
    def __init__(self):
        super().__init__("")

    def secrets(self):
        return ["hook-secret"]

    def send(self, message):
        raise KeyError("a mistake of ours, with hook-secret in it")
