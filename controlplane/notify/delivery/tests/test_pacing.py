"""The rate limit of a destination holds for all senders together."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core import threads
from controlplane.core.clock import db_now
from controlplane.core.outbox.models import Attempt, OutboxMessage, Pace
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.delivery import claims, sender
from controlplane.notify.delivery.claims import ClaimedMessage
from controlplane.notify.delivery.sender_pool import SenderPool
from controlplane.notify.delivery.tests.outbox_helpers import (
    announce,
    nobody_sends,
    states,
    sweep,
    wait_until,
)
from controlplane.notify.transports import destinations, rate_limits

AT = datetime(2026, 11, 21, tzinfo=UTC)


@given(
    st.floats(0.05, 5),
    st.integers(1, 20),
    st.lists(st.floats(0, 10), min_size=1, max_size=60),
)
def test_no_stretch_of_time_sees_more_than_the_burst_and_the_rate(seconds, burst, pauses):
    limit, paced_until, now, sent = RateLimit(1 / seconds, burst), AT, AT, []
    for pause in pauses:
        now += timedelta(seconds=pause)
        if rate_limits.wait_seconds(limit, paced_until, now) == 0:
            paced_until = rate_limits.advance(limit, paced_until, now)
            sent.append((now - AT).total_seconds())

    for first, began in enumerate(sent):
        for last in range(first, len(sent)):
            allowed = burst + (sent[last] - began) / seconds
            assert last - first + 1 <= allowed + 0.001


@given(st.floats(0.05, 5), st.integers(1, 20), st.integers(0, 60))
def test_who_waits_as_long_as_told_may_go(seconds, burst, already):
    limit, paced_until = RateLimit(1 / seconds, burst), AT
    for _ in range(min(already, burst)):  # No more are let through at one moment.
        paced_until = rate_limits.advance(limit, paced_until, AT)

    wait = rate_limits.wait_seconds(limit, paced_until, AT)

    later = AT + timedelta(seconds=wait, microseconds=2)
    assert rate_limits.wait_seconds(limit, paced_until, later) == 0
    assert (wait < 0.000_1) == (already < burst)


@pytest.fixture
def slowly(monkeypatch):
    monkeypatch.setattr(destinations, "limit_for", lambda _: RateLimit(5, 3))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("slowly", "ended")
def test_after_a_burst_one_message_an_interval_across_senders(by_bot):
    announce(8)
    processes = [SenderPool(sender.send_one) for _ in range(3)]

    for senders in processes:
        senders.serve("slack")

    wait_until(lambda: states() == ["sent"] * 8, 10)
    began = list(Attempt.objects.order_by("started_at").values_list("started_at", flat=True))
    assert len(by_bot.messages) == len(began) == 8
    assert (began[7] - began[0]).total_seconds() >= (8 - 3) * 0.2 - 0.01


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("slowly", "ended")
def test_a_paced_destination_delays_no_other(by_bot, monkeypatch):
    monkeypatch.setattr(destinations, "limit_for", lambda _: RateLimit(1 / 60, 1))
    announce(5)
    announce(to=["slack:C0000LEAD"], first=6)

    for _ in range(3):
        sweep()
        wait_until(nobody_sends)

    assert sorted(states()) == ["pending"] * 4 + ["sent"] * 2
    assert len(by_bot.channels["C0000LEAD"]) == 1


@pytest.mark.django_db(transaction=True)
def test_a_destination_that_asked_to_be_left_alone_is_not_swept(by_bot):
    announce(2)
    claimed = claims.claim_message("slack")

    claims.record_outcome(claimed, claims.AttemptOutcome("429", 30, keep_away_seconds=30))
    claims.record_outcome(claimed, claims.AttemptOutcome("429", 3, keep_away_seconds=3))

    assert 29 < claims.claim_message("slack") <= 30
    assert sweep() == 0
    assert claims.due_destinations(db_now() + timedelta(seconds=31)) == ["slack"]
    Pace.objects.update(keep_away_until=db_now())
    assert isinstance(claims.claim_message("slack"), ClaimedMessage)
    OutboxMessage.objects.update(state="failed")


@pytest.mark.django_db(transaction=True)
def test_claims_at_once_take_each_message_once_and_number_its_attempts(by_bot, monkeypatch):
    monkeypatch.setattr(destinations, "limit_for", lambda _: RateLimit(1000, 1000))
    announce(40)
    taken, lock = [], threading.Lock()

    def take():
        with threads.own_connection():
            while isinstance(claimed := claims.claim_message("slack"), ClaimedMessage):
                with lock:
                    taken.append(claimed.message.pk)

    crowd = [threading.Thread(target=take) for _ in range(6)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()

    assert sorted(taken) == sorted(OutboxMessage.objects.values_list("pk", flat=True))
    assert len(taken) == 40
    OutboxMessage.objects.update(state="failed")
