"""Delivery after PostgreSQL's clock was set back, so that stored times are in the future."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage, Pace
from controlplane.core.rate_limiter import RateLimit
from controlplane.notify.delivery import claims, digests
from controlplane.notify.delivery.claims import LEASE_SECONDS, MAX_ATTEMPTS, ClaimedMessage
from controlplane.notify.transports import rate_limits

from .outbox_helpers import announce

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
STEP = timedelta(minutes=20)


def set_back():
    """Move all stored times 20 minutes ahead, as if the clock had been set back since."""
    OutboxMessage.objects.update(
        created_at=F("created_at") + STEP,
        next_attempt_at=F("next_attempt_at") + STEP,
        lease_until=F("lease_until") + STEP,
    )
    Pace.objects.update(paced_until=F("paced_until") + STEP)


def test_pace_later_than_a_full_burst_leads_to_counts_no_more():
    limit = RateLimit(per_second=0.5, burst=5)

    assert rate_limits.wait_seconds(limit, NOON + timedelta(seconds=10), NOON) == 2.0
    assert rate_limits.wait_seconds(limit, NOON + STEP, NOON) == 0.0
    assert rate_limits.advance(limit, NOON + STEP, NOON) == NOON + timedelta(seconds=2)


@pytest.mark.django_db
@pytest.mark.usefixtures("by_bot")
def test_message_written_after_the_clock_was_set_back_is_sent_at_once():
    announce()
    claims.claim_message("slack")
    set_back()

    announce(first=2)

    assert isinstance(claims.claim_message("slack"), ClaimedMessage)
    assert claims.due_destinations(db_now()) == ["slack"]


@pytest.mark.django_db
@pytest.mark.usefixtures("by_bot", "no_pace")
@pytest.mark.parametrize("is_leased", [True, False], ids=["leased", "never tried"])
def test_message_written_before_holds_up_none_about_the_same_subject(is_leased):
    announce(subject="episode:1")
    if is_leased:
        claims.claim_message("slack")
    set_back()
    announce(first=2, subject="episode:1")

    claimed = claims.claim_message("slack")

    assert claimed.message.event_key == "audit:1"


@pytest.mark.django_db
@pytest.mark.usefixtures("by_bot", "no_pace")
def test_sender_that_died_in_the_last_attempt_is_noticed():
    announce()
    claims.claim_message("slack")
    OutboxMessage.objects.update(attempts=MAX_ATTEMPTS)
    set_back()

    assert len(claims.claim_exhausted(db_now())) == 1


@pytest.mark.django_db
@pytest.mark.usefixtures("by_bot", "no_pace")
def test_lease_that_lasts_and_members_of_a_digest_stay_taken():
    announce(2)
    claims.claim_message("slack")
    last = OutboxMessage.objects.last()
    last.lease_until = db_now() + digests.MEMBER_LEASE
    last.save()

    assert claims.claim_message("slack") is None
    assert not claims.due_messages(db_now() + timedelta(seconds=LEASE_SECONDS - 5)).exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("by_bot")
@pytest.mark.parametrize(("later", "is_kept_away"), [(-1, True), (60, False)])
def test_destination_is_kept_away_from_no_longer_than_a_retry_after_may_ask(later, is_kept_away):
    announce()
    until = db_now() + rate_limits.MAX_KEEP_AWAY + timedelta(seconds=later)
    Pace.objects.create(destination="slack", paced_until=db_now(), keep_away_until=until)

    assert claims.due_destinations(db_now()) == ([] if is_kept_away else ["slack"])
    assert isinstance(claims.claim_message("slack"), float if is_kept_away else ClaimedMessage)


@pytest.mark.django_db
@pytest.mark.usefixtures("by_bot")
def test_retry_after_replaces_one_from_before_the_clock_was_set_back():
    announce()
    claimed = claims.claim_message("slack")
    far = db_now() + 2 * rate_limits.MAX_KEEP_AWAY
    Pace.objects.update(keep_away_until=far)

    claims.record_outcome(claimed, claims.AttemptOutcome("busy", 30.0, keep_away_seconds=30.0))

    away = Pace.objects.get().keep_away_until - db_now()
    assert timedelta(seconds=25) < away <= timedelta(seconds=30)
