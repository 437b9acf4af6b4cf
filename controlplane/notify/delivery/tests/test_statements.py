"""Sentences about deliveries state only what the outbox knows."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.outbox.services import announce
from controlplane.notify.delivery import statements
from controlplane.notify.delivery.report_sections import deliveries_section
from controlplane.notify.delivery.statements import DeliveryCounts
from controlplane.notify.models.targets import Target

from .message_samples import create_message, hook


@pytest.mark.parametrize(
    ("counts", "text", "tone"),
    [
        (DeliveryCounts(), "No recipient is configured for this: nobody was notified", "bad"),
        (DeliveryCounts(delivered=1), "Delivered to 1 of 1 destination", "good"),
        (DeliveryCounts(3, 1), "Delivered to 3 of 4 destinations. Waiting: 1", "pending"),
        (DeliveryCounts(1, 1, 2), "Delivered to 1 of 4 destinations. Waiting: 1. Failed: 2", "bad"),
        (DeliveryCounts(replaced=2), "Replaced by a newer message", "good"),
    ],
)
def test_counts_become_a_statement(counts, text, tone):
    found = statements.describe_counts(counts)

    assert (found.text, found.tone) == (text, tone)


@pytest.mark.django_db
def test_notifications_of_an_escalation_count_as_sent_once_delivered():
    escalation = Escalation.objects.create(
        subject="alert:7", event="slo.firing", severity="critical", opened_at=db_now(), notices=2
    )
    before = statements.describe_escalation(escalation)
    for number, state in ((1, "sent"), (2, "pending")):
        message = create_message(state, f"webhook:{number}")
        message.event_key = f"escalation:{escalation.pk}:{number}"
        message.save(update_fields=["event_key"])

    after = statements.describe_escalation(escalation)

    assert before is None
    assert after.text == "1 of 2 messages delivered. Waiting: 1"


@pytest.mark.django_db
def test_event_without_targets_is_said_to_reach_nobody():
    announce(event="switch.engaged", event_key="e:1", facts={}, to=[], now=db_now())

    context = statements.event_context("e:1", db_now())

    assert context["statement"].text == statements.NOBODY_NOTIFIED


@pytest.mark.django_db
def test_page_of_an_event_lists_each_destination_with_its_error():
    message = create_message("failed", f"webhook:{hook().pk}", error="HTTP 404 from the receiver")

    page = as_role("viewer").client.get(f"/deliveries/event/?event_key={message.event_key}")

    html = page.content.decode()
    for part in ("Delivered to 0 of 1 destination. Failed: 1", "pager (webhook)", "HTTP 404"):
        assert part in html


@pytest.mark.django_db
def test_week_without_messages_is_not_called_fine_if_nobody_would_be_notified():
    now = db_now()

    section = deliveries_section(now - timedelta(days=7), now, now)
    old = deliveries_section(now - timedelta(days=70), now - timedelta(days=63), now)

    assert (section.summary, section.tone) == (f"{statements.NO_RECIPIENT}.", "warn")
    assert old.tone == "unknown"


@pytest.mark.django_db
def test_week_without_messages_is_quiet_if_somebody_would_be_notified():
    now = db_now()
    channel = hook()
    Target.objects.get(name="critical").steps.update(target=channel)

    section = deliveries_section(now - timedelta(days=7), now, now)

    assert (section.summary, section.tone) == ("No messages this week.", "good")


@pytest.mark.django_db
def test_test_message_shows_its_outcome_and_pauses():
    client, channel = as_role("admin").client, hook()

    sent = client.post(f"/targets/{channel.pk}/test/", follow=True)
    again = client.post(f"/targets/{channel.pk}/test/")
    OutboxMessage.objects.update(state="sent", finished_at=db_now())
    later = client.get(sent.redirect_chain[-1][0])

    assert f"Test message to {channel.name}" in sent.content.decode()
    assert "Delivered to 0 of 1 destination. Waiting: 1" in sent.content.decode()
    assert again.status_code == 429
    assert "Delivered to 1 of 1 destination" in later.content.decode()
