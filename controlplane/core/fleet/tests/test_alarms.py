"""Alarms of data planes and relays: opened once, closed with a reason, quiet about restarts."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.core import ticks
from controlplane.core.attention import services as attention
from controlplane.core.clock import db_now
from controlplane.core.fleet import alarms
from controlplane.core.fleet.tests.rows import SECOND, create_process, publish
from controlplane.core.models import DataPlane
from controlplane.core.outbox import renderer
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.process_models import Tick

pytestmark = pytest.mark.django_db


@pytest.fixture
def now(settings):
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")
    now = db_now()
    publish(now)
    return now


def list_open():
    return sorted(Escalation.objects.filter(closed_at=None).values_list("subject", flat=True))


def mark_stopped(row):
    DataPlane.objects.filter(pk=row.pk).update(is_stopped=True)


def test_silent_relay_is_announced_once_and_needs_attention(now):
    create_process("dp-1", now)
    create_process("eu-1", now, upstream="dp-1", silent_for=61)

    assert alarms.update_alarms(now) == 1
    assert alarms.update_alarms(now) == 0

    (alarm,) = Escalation.objects.all()
    message = renderer.render(alarm.event, alarm.facts)
    assert (message.title, message.path) == ("Relay eu-1 is silent", "/fleet/")
    assert dict(message.lines)["What to do"].startswith("Check that it runs and reaches dp-1.")
    titles = [item.title for item in attention.read_all(now).waiting]
    assert "Relay eu-1 is silent" in titles


@pytest.mark.parametrize(
    "fields",
    [
        {"silent_for": 60},  # It may be restarting.
        {"silent_for": 5},
        {"age_seconds": 900.0, "started_at": timedelta(seconds=20)},
        {"version": None, "started_at": timedelta(seconds=20)},
    ],
)
def test_restarting_process_opens_no_alarm(now, fields):
    if "started_at" in fields:
        fields = {**fields, "started_at": now - fields["started_at"]}
    create_process("dp-1", now, **fields)

    assert alarms.update_alarms(now) == 0


def test_replaced_process_opens_no_alarm(now):
    create_process("dp-1", now, silent_for=600)
    create_process("dp-1", now, started_at=now - 590 * SECOND)

    assert alarms.update_alarms(now) == 0


def test_relay_of_a_silent_upstream_opens_no_alarm_of_its_own(now):
    create_process("dp-1", now)
    create_process("eu-1", now, upstream="dp-1", silent_for=90)
    create_process("eu-2", now, upstream="eu-1", silent_for=90)

    alarms.update_alarms(now)

    assert list_open() == ["fleet:eu-1"]


def test_alarm_ends_when_the_relay_is_up_to_date_again(now):
    row = create_process("eu-1", now, upstream="dp-1", age_seconds=40.0)
    alarms.update_alarms(now)
    row.age_seconds = 0.3
    row.save()

    assert alarms.update_alarms(now + SECOND) == 1

    assert list_open() == []
    message = OutboxMessage.objects.get(event="fleet.recovered")
    rendered = renderer.render(message.event, message.payload)
    assert rendered.title == "Resolved: Relay eu-1 lags"
    assert dict(rendered.lines)["Reason"] == "It is up to date again, at version 120."


def test_alarm_stays_open_while_the_relay_starts_again(now):
    row = create_process("eu-1", now, upstream="dp-1", silent_for=90)
    alarms.update_alarms(now)
    DataPlane.objects.filter(pk=row.pk).update(
        heard_at=now, started_at=now, version=None, age_seconds=None
    )

    assert alarms.update_alarms(now) == 0
    assert list_open() == ["fleet:eu-1"]


def test_process_that_stopped_cleanly_opens_no_alarm(now):
    create_process("dp-1", now, silent_for=600, is_stopped=True)

    assert alarms.update_alarms(now) == 0


@pytest.mark.parametrize("remove", [DataPlane.delete, mark_stopped])
def test_alarm_ends_when_the_process_is_no_longer_listed(now, remove):
    row = create_process("eu-1", now, upstream="dp-1", silent_for=90)
    alarms.update_alarms(now)
    remove(row)

    assert alarms.update_alarms(now) == 1

    message = OutboxMessage.objects.get(event="fleet.recovered")
    assert "no longer listed" in message.payload["reason"]


def test_number_of_open_alarms_is_limited(now):
    for n in range(alarms.MAX_OPEN + 5):
        create_process(f"eu-{n:02}", now, upstream="dp-1", silent_for=90)

    alarms.update_alarms(now)
    assert len(list_open()) == alarms.MAX_OPEN
    DataPlane.objects.filter(name__in=["eu-00", "eu-01"]).delete()
    alarms.update_alarms(now)

    assert len(list_open()) == alarms.MAX_OPEN
    assert "fleet:eu-11" in list_open()


@pytest.mark.parametrize(("seconds", "opened"), [(60, 1), (61, 0), (None, 0)])
def test_after_an_outage_the_first_check_waits_for_reports(now, seconds, opened):
    create_process("dp-1", now, silent_for=300)
    if seconds is not None:
        Tick.objects.update_or_create(
            name=alarms.TICK, defaults={"ran_at": now - seconds * SECOND, "ran_by": "worker"}
        )

    assert alarms.check_fleet(now) == opened


def test_check_runs_every_15_seconds():
    assert ticks.list_ticks()["fleet.check"].seconds == 15
