"""Digests: many reminders become one message, other messages don't."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.outbox.models import Attempt, OutboxMessage
from controlplane.notify.delivery import claims, digests, failed_messages

from .outbox_helpers import announce, deliver, states, sweep, wait_until

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("no_pace", "impatient", "ended"),
]


MANY = """
    INSERT INTO core_outboxmessage (event, event_key, destination, subject, severity, payload,
        state, attempts, fence, next_attempt_at, created_at, last_error)
    SELECT CASE n %% 5 WHEN 0 THEN 'switch.engaged' ELSE event END, event_key || n, destination,
        'segment:s' || n %% 1000, severity, payload, state, attempts, fence,
        next_attempt_at, created_at, last_error
    FROM core_outboxmessage, generate_series(1, %s) AS n
"""


def remind(count, **more):
    announce(count, event="episode.expires_soon", **more)


def test_a_storm_of_reminders_is_one_message_that_lists_them(by_bot, settings):
    settings.PUBLIC_URL = "https://console.example"
    remind(37)

    deliver()

    (post,) = by_bot.messages
    assert "37 reminders" in post["text"]
    assert "segment:s1" in post["text"] or "episode.expires_soon" in post["text"]
    assert "17 more" in post["text"]
    assert "https://console.example/attention/" in post["blocks"][-1]["elements"][0]["text"]
    assert states() == ["sent"] * 38
    assert Attempt.objects.count() == 1


def test_ten_reminders_are_no_storm(by_bot):
    remind(10)

    deliver()

    assert len(by_bot.messages) == 10


def test_other_messages_are_never_told_together(by_bot):
    announce(12)
    remind(12, first=13)

    deliver()

    assert len(by_bot.messages) == 13


@pytest.mark.parametrize("step", ["429 1", "500", "accepted 500", "accepted hang", "reset"])
def test_a_storm_is_one_message_whatever_slack_does(by_bot, step):
    by_bot.script = [step]
    remind(20)

    deliver()

    assert len(by_bot.messages) == 1
    assert set(states()) == {"sent"}


def test_two_senders_gather_one_digest(by_bot):
    remind(20)
    first, second = claims.claim_message("slack"), claims.claim_message("slack")

    assert first.message.event == digests.EVENT
    assert second is None
    claims.record_outcome(first, claims.AttemptOutcome())
    assert set(states()) == {"sent"}


def test_a_digest_that_is_held_up_holds_up_nothing_else_about_its_subjects(by_bot):
    remind(12, subject="episode:1")
    digest = claims.claim_message("slack")
    claims.record_outcome(digest, claims.AttemptOutcome("busy", 3600.0))

    announce(first=13, event="episode.overdue", subject="episode:1")
    announce(first=14, event="switch.released", subject="episode:1")

    overdue = claims.claim_message("slack")
    assert overdue.message.event == "episode.overdue"
    assert claims.claim_message("slack") is None
    claims.record_outcome(overdue, claims.AttemptOutcome())
    assert claims.claim_message("slack").message.event == "switch.released"
    OutboxMessage.objects.update(state="failed")


def test_reminders_behind_a_digest_that_is_held_up_are_a_storm_of_their_own(by_bot):
    remind(12, subject="episode:1")
    claims.record_outcome(claims.claim_message("slack"), claims.AttemptOutcome("busy", 3600.0))

    remind(11, first=13, subject="episode:1")

    assert claims.claim_message("slack").message.payload["count"] == 11
    OutboxMessage.objects.update(state="failed")


def test_a_reminder_does_not_overtake_what_it_is_about(by_bot):
    announce(event="switch.engaged", subject="episode:1")
    remind(12, first=2, subject="episode:1")
    remind(11, first=14, subject="episode:2")

    digest = claims.claim_message("slack")

    assert digest.message.payload["count"] == 11
    OutboxMessage.objects.update(state="failed")


def test_thousands_of_reminders_are_gathered_in_time(by_bot):
    remind(1)
    with connection.cursor() as cursor:
        # A storm comes before autovacuum has counted the rows.
        cursor.execute("ANALYZE core_outboxmessage")
        cursor.execute(MANY, [10_000])

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '2s'")
        digest = digests.create_digest("slack", db_now())

    assert len(digests.list_members(digest)) == digests.MAX_TOGETHER
    assert OutboxMessage.objects.filter(digests.IN_DIGEST).count() == digests.MAX_TOGETHER


def test_a_digest_that_is_given_up_fails_its_members_and_its_retry_saves_them(by_bot):
    by_bot.always = "ok:false invalid_auth"
    remind(12)
    sweep()
    wait_until(lambda: set(states()) == {"failed"})
    digest = OutboxMessage.objects.get(event=digests.EVENT)
    member = OutboxMessage.objects.exclude(pk=digest.pk).first()
    assert f"message {digest.pk}" in member.last_error
    by_bot.always = "ok"

    failed_messages.retry_message(message_id=digest.pk, actor=system_actor("test"), now=db_now())
    deliver()

    assert set(states()) == {"sent"}
    assert len(by_bot.messages) == 1


def test_a_sender_that_died_with_a_digest_loses_no_member(by_bot):
    remind(12)
    digest = claims.claim_message("slack").message
    OutboxMessage.objects.filter(pk=digest.pk).update(lease_until=db_now() - timedelta(seconds=1))

    deliver()

    assert set(states()) == {"sent"}
    assert len(by_bot.messages) == 1
