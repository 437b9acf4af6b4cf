"""`Retry-After`: nothing is sent to the destination meanwhile, and no message is lost."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import Attempt, OutboxMessage, Pace
from controlplane.notify.delivery import claims, sender
from controlplane.notify.transports.failures import TransientFailure

from .outbox_helpers import announce, attempted, make_due, message, nobody_sends, sweep, wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_pace", "ended")]


def test_retry_after_keeps_every_message_away(by_bot):
    by_bot.script = ["429 30"]
    announce(3)
    before = db_now()

    sweep()

    wait_until(lambda: message(event_key="audit:1").last_error)
    assert set(OutboxMessage.objects.values_list("state", flat=True)) == {"pending"}
    away = Pace.objects.get(pk="slack").keep_away_until - before
    assert timedelta(seconds=30) <= away < timedelta(seconds=33)
    wait_until(nobody_sends)
    assert sweep() == 0
    assert len(by_bot.requests) == 1
    assert claims.due_destinations(db_now() + timedelta(seconds=34)) == ["slack"]


@pytest.mark.parametrize("step", ["429 1", "429 0"])
def test_a_destination_that_keeps_asking_to_come_later_fails_no_message(by_bot, step):
    by_bot.script = [step] * 12
    announce()

    for attempt in range(1, 13):
        make_due()
        before = db_now()
        sweep()
        wait_until(lambda number=attempt: tried(number))
        assert message().next_attempt_at - before >= timedelta(seconds=1)
        assert Pace.objects.get().keep_away_until - before >= timedelta(seconds=1)

    assert (message().state, message().attempts) == ("pending", 0)
    make_due()
    sweep()
    assert attempted().state == "sent"


def test_asking_to_come_later_makes_the_pauses_grow_and_never_shorter_than_asked():
    busy = TransientFailure("busy", retry_after_seconds=1)
    row = OutboxMessage(attempts=1)

    def pauses(attempt):
        claimed = claims.ClaimedMessage(row, attempt)
        return [sender._plan_retry(claimed, busy).pause_seconds for _ in range(200)]

    assert min(pauses(1)) >= 1
    assert max(pauses(1)) <= 2
    assert max(pauses(7)) > 60
    assert max(pauses(40)) <= 2 * 3**7


def test_after_hours_of_asking_to_come_later_it_counts(by_bot):
    by_bot.always = "429 1"
    announce()
    OutboxMessage.objects.update(created_at=db_now() - sender.PATIENCE - timedelta(minutes=1))

    for attempt in range(1, 9):
        make_due()
        sweep()
        attempted(attempt)

    assert message().state == "failed"


def tried(number):
    return Attempt.objects.filter(number=number, finished_at__isnull=False).exists()
