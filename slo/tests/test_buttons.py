"""Acknowledging an alert from a message."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden
from controlplane.core.escalations import services as escalations
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.interactions import actions
from slo.models import Alert
from switches.models import Episode
from switches.tests.browsers import engaged

from . import factories
from .factories import OPERATOR, VIEWER
from .month_of_events import alert

pytestmark = pytest.mark.django_db


def press(value, actor=OPERATOR, now=None):
    return actions.find_action("acknowledge")(value, actor, now or db_now())


def climbing(of):
    return escalations.open_escalation(
        subject=f"alert:{of.pk}", event="slo.alert", severity="critical", facts={}, now=db_now()
    )


def test_button_of_an_alert_acknowledges_it():
    one = alert(factories.slo(), db_now(), None)

    message = press({"subject": f"alert:{one.pk}", "alert": one.pk})

    one.refresh_from_db()
    assert one.acknowledged_by == "user:olga"
    assert message == "You acknowledged core-availability. Escalation is paused for 24 hours."


def test_button_of_a_step_acknowledges_the_alert_behind_it():
    one = alert(factories.slo(), db_now(), None)
    step = climbing(one)

    press({"subject": step.subject, "escalation": step.pk})

    one.refresh_from_db()
    assert one.acknowledged_by == "user:olga"
    assert Escalation.objects.get().acknowledged_by == "user:olga"


def test_second_click_says_who_was_first():
    one = alert(factories.slo(), db_now(), None)
    press({"alert": one.pk})
    first = Alert.objects.get().acknowledged_at

    message = press({"alert": one.pk}, now=first + timedelta(minutes=1))

    assert message.startswith("user:olga has already acknowledged it")
    assert Alert.objects.get().acknowledged_at == first


def test_what_is_over_is_said_to_be():
    one = alert(factories.slo(), db_now() - timedelta(hours=1), 5)

    with pytest.raises(Conflict, match="over"):
        press({"alert": one.pk})


def test_viewer_may_not():
    one = alert(factories.slo(), db_now(), None)

    with pytest.raises(Forbidden):
        press({"alert": one.pk}, VIEWER)


def test_buttons_of_switches_do_what_they_did():
    engaged("segment:finance")
    episode = Episode.objects.get()

    message = press({"switch": "segment:finance", "episode": episode.pk})

    assert message.startswith("You acknowledged segment:finance")


def test_escalation_of_an_alert_is_acknowledged_as_the_alert():
    step = climbing(alert(factories.slo(), db_now(), None))

    with pytest.raises(Conflict, match="on its page"):
        escalations.acknowledge_one(escalation_id=step.pk, actor=OPERATOR, now=db_now())
