"""A switch that a person engages is no critical alert to them; one that a machine trips is."""

from datetime import timedelta

import pytest

from controlplane.core.attention import services as overview
from controlplane.core.clock import db_now
from slo.models import Alert
from slo.templatetags.slos import open_alerts
from slo.thresholds import evaluation
from switches.models import Episode
from switches.tests.browsers import engaged, released
from switches.trips.tests.requests import request_stop

pytestmark = pytest.mark.django_db
TICK = timedelta(seconds=10)


def list_alerts(**fields):
    return list(Alert.objects.filter(**fields).values_list("subject", "severity"))


def test_engaging_by_hand_is_information_alone():
    kim = engaged("segment:finance")
    now = db_now()
    evaluation.evaluate_rules(now)
    evaluation.evaluate_rules(now + TICK)

    waiting = overview.read_all(now)
    items = [one for one in waiting.shown_to(kim.pk).waiting if "segment:finance" in one.title]

    assert list_alerts() == [("segment:finance", "info")]
    assert [(one.title, one.severity) for one in items] == [("You engaged segment:finance", "info")]
    assert not [one for one in waiting.shown_to(-1).waiting if "segment:finance" in one.title]
    assert open_alerts() == {"total": 1, "tone": ""}


def test_switch_that_a_machine_trips_is_critical():
    now = db_now()
    request_stop(now, switch="experiment:checkout-b")
    evaluation.evaluate_rules(db_now())

    assert list_alerts() == [("experiment:checkout-b", "critical")]
    assert [one.severity for one in overview.read_all(now).waiting if one.kind == "slo_alert"] == [
        "critical"
    ]
    assert open_alerts() == {"total": 1, "tone": "stop"}


def test_overdue_switch_is_critical_although_engaged_by_hand():
    kim = engaged("segment:finance")
    Episode.objects.update(overdue_at=db_now(), expires_at=db_now())

    found = overview.read_all(db_now()).shown_to(kim.pk)
    items = [one for one in found.waiting if "segment:finance" in one.title]

    assert [(one.kind, one.severity) for one in items] == [("overdue", "critical")]


def test_switch_that_a_machine_trips_after_a_person_released_it_is_an_alert_of_its_own():
    engaged("experiment:checkout-b")
    now = db_now()
    evaluation.evaluate_rules(now)
    released("experiment:checkout-b")
    request_stop(db_now(), switch="experiment:checkout-b")

    evaluation.evaluate_rules(now + TICK)
    evaluation.evaluate_rules(now + 2 * TICK)

    assert list_alerts(resolved_at=None) == [("experiment:checkout-b", "critical")]
