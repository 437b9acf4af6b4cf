"""Backlog, failed and delayed messages: alarms and attention items, and their end."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.core import ticks
from controlplane.core.actors import system_actor
from controlplane.core.attention import services as overview
from controlplane.core.escalations import services as escalation
from controlplane.core.outbox import renderer
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage, Pace
from controlplane.notify.delivery import attention, backlog, report_sections

from .message_samples import create_message, hook, route_to_hook, somebody

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
WEEK = timedelta(days=7)


def waiting(count):
    OutboxMessage.objects.filter(state="pending").delete()
    OutboxMessage.objects.bulk_create(
        OutboxMessage(
            event="switch.engaged",
            event_key=f"backlog:{number}",
            destination="slack",
            payload={},
            next_attempt_at=NOW,
            created_at=NOW - timedelta(minutes=1),
        )
        for number in range(count)
    )


def alarms():
    return Escalation.objects.filter(subject="outbox:backlog", closed_at=None).count()


def test_a_thousand_is_not_too_many_and_one_more_is():
    waiting(1000)
    backlog.watch_backlog(NOW)
    assert alarms() == 0

    waiting(1001)
    assert backlog.watch_backlog(NOW) == 1001

    alarm = Escalation.objects.get()
    assert (alarm.severity, alarm.event) == ("critical", "outbox.backlog")
    notice = renderer.render(alarm.event, alarm.facts)
    assert "1001 messages" in notice.title
    assert notice.path == "/deliveries/?state=pending"
    assert any("2026-11-21 02:10:00 UTC" in text for _, text in notice.lines)


def test_it_alarms_once_however_often_it_looks():
    waiting(1001)

    for minute in range(3):
        backlog.watch_backlog(NOW + timedelta(minutes=minute))

    assert Escalation.objects.count() == 1


def test_it_stays_until_fewer_than_five_hundred_wait_and_says_so_once(settings):
    waiting(1001)
    backlog.watch_backlog(NOW)
    waiting(500)
    backlog.watch_backlog(NOW)
    assert alarms() == 1

    waiting(499)
    backlog.watch_backlog(NOW)
    backlog.watch_backlog(NOW)

    assert alarms() == 0
    assert OutboxMessage.objects.filter(event="outbox.drained").count() <= 1


def test_another_backlog_is_another_alarm():
    for count in (1001, 0, 1001):
        waiting(count)
        backlog.watch_backlog(NOW)

    assert Escalation.objects.count() == 2
    assert alarms() == 1


def test_a_backlog_is_critical_until_somebody_knows_of_it_and_then_still_waits():
    waiting(1001)
    backlog.watch_backlog(NOW)
    shown = [one for one in overview.read_all(NOW).waiting if one.kind == "outbox_backlog"]
    assert [(one.severity, one.since) for one in shown] == [("critical", NOW)]
    assert "The alarm ends when fewer than 500 are waiting." in shown[0].detail

    escalation.acknowledge(subject="outbox:backlog", actor=system_actor("test"), now=NOW)

    (one,) = attention.list_backlog_alarms(NOW)
    assert "1,001" in one.title
    assert (one.severity, one.since) == ("warning", NOW)


def test_what_failed_waits_for_attention_once_for_each_destination():
    pager = hook()
    create_message("failed", f"webhook:{pager.pk}", at=NOW - timedelta(hours=2), severity="warning")
    create_message("failed", f"webhook:{pager.pk}", at=NOW - timedelta(hours=1))
    create_message("failed", "slack", at=NOW, severity="critical")
    create_message("sent", "slack", at=NOW)

    first, second = attention.list_undelivered_messages(NOW + timedelta(minutes=1))

    assert first.title == "2 messages to pager (webhook) failed"
    assert (first.severity, second.severity) == ("warning", "critical")
    assert first.since == NOW - timedelta(hours=2) + timedelta(seconds=2)
    assert first.path == f"/deliveries/?state=failed&destination=webhook%3A{pager.pk}"
    assert second.title == "1 message to slack failed"


def test_nobodys_address_is_in_what_waits_or_in_the_report():
    somebody("kim", email="kim@example.org")
    create_message("failed", "email:kim@example.org", at=NOW)
    create_message("pending", "email:kim@example.org", at=NOW - timedelta(hours=1))
    now = NOW + timedelta(minutes=1)

    text = repr(
        [*attention.list_undelivered_messages(now), *attention.list_undelivered_messages(now)]
    )
    text += repr(report_sections.deliveries_section(MONDAY, MONDAY + WEEK, now))

    assert "kim (e-mail)" in text
    assert "kim@" not in text
    assert "kim%40" not in text


def test_a_destination_that_holds_messages_up_for_long_waits_for_attention():
    create_message("pending", "slack", at=NOW - timedelta(minutes=16))
    create_message("pending", "slack:C1", at=NOW - timedelta(minutes=14))
    Pace.objects.create(
        destination="slack", paced_until=NOW, keep_away_until=NOW + timedelta(minutes=40)
    )

    (one,) = attention.list_undelivered_messages(NOW)

    assert one.title == "1 message to slack is delayed"
    assert "40 min" in one.detail


def test_the_report_tells_sent_failed_and_the_slowest_by_destination():
    pager = hook()
    within = MONDAY + timedelta(days=2)
    for seconds in (1, 30):
        message = create_message("sent", "slack", at=within)
        OutboxMessage.objects.filter(pk=message.pk).update(
            finished_at=within + timedelta(seconds=seconds)
        )
    create_message("failed", f"webhook:{pager.pk}", at=within)
    create_message("pending", "slack", at=within)
    create_message("sent", "slack", at=MONDAY - timedelta(seconds=1))
    create_message("sent", "slack", at=MONDAY + WEEK)

    section = report_sections.deliveries_section(MONDAY, MONDAY + WEEK, NOW)

    assert section.tone == "bad"
    assert [dict(row.cells) for row in section.rows] == [
        {"Destination": "pager (webhook)", "Sent": 0, "Failed": 1, "Pending": 0, "Slowest": ""},
        {"Destination": "slack", "Sent": 2, "Failed": 0, "Pending": 1, "Slowest": "30 s"},
    ]
    assert section.summary == "2 messages delivered. Waiting: 1. Failed: 1."


def test_a_failure_of_an_earlier_week_is_in_the_report_until_it_is_dealt_with():
    create_message("failed", "slack", at=MONDAY - 3 * WEEK)

    section = report_sections.deliveries_section(MONDAY, MONDAY + WEEK, NOW)

    assert section.tone == "bad"
    assert section.rows[0].cells["Failed"] == 1


def test_a_quiet_week_is_a_good_one():
    route_to_hook()

    section = report_sections.deliveries_section(MONDAY, MONDAY + WEEK, NOW)

    assert (section.tone, section.rows) == ("good", ())


def test_a_quiet_week_without_a_target_is_a_warning():
    section = report_sections.deliveries_section(MONDAY, MONDAY + WEEK, NOW)

    assert (section.tone, section.rows) == ("warn", ())
    assert section.summary == "No recipient is configured: nobody is notified."


def test_the_tick_is_registered():
    assert ticks.list_ticks()["outbox.backlog"].seconds == 60
    assert ticks.run("outbox.backlog", "test") == OutboxMessage.objects.count() == 0
