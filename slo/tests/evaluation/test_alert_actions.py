"""Actions of alerts: trip requests, and holds of ramps."""

import pytest

from controlplane.core.gates.models import Hold
from controlplane.core.trip_requests.models import TripRequest
from slo.evaluation import tick
from slo.models import Alert, Slo
from slo.tests import factories
from switches.trips import services

from .scenarios import (
    BAD,
    GOOD,
    NONE,
    NOON,
    TICKET,
    alert,
    create_burning_slo,
    due_at,
    evaluate_minutes,
)

pytestmark = pytest.mark.django_db

STOP = {"on": "page", "do": "trip", "switch": "experiment:new-planner", "expires_in": "2h"}
HOLD = {"on": "page", "do": "hold_ramps"}
CLOSED = {**STOP, "on_unknown": "act"}
BRIEFLY = [*[BAD] * 2, *[GOOD] * 10]


def alert_marks():
    return [f"alert:{one.pk}" for one in Alert.objects.order_by("pk")]


def list_requests():
    rows = TripRequest.objects.order_by("pk")
    return [(one.switch, one.fingerprint, one.is_over) for one in rows]


def test_a_page_asks_once_that_a_switch_be_stopped_with_the_evidence():
    create_burning_slo(after=[BAD] * 10, actions=[STOP])

    evaluate_minutes(NOON, NOON + 6)

    request = TripRequest.objects.get()
    assert request.source == "slo:core-availability"
    assert (request.switch, request.expires_in) == ("experiment:new-planner", "2h")
    assert request.fingerprint == f"alert:{alert().pk}"
    assert request.evidence["windows"]["5m"]["bad"] == 10006
    services.decide_open_requests(due_at(NOON + 6))
    request.refresh_from_db()
    assert request.tripped is True, request.why


def test_once_it_is_over_that_is_said_and_the_next_alert_asks_anew():
    create_burning_slo(after=[*BRIEFLY, *BRIEFLY], actions=[STOP])

    evaluate_minutes(NOON, NOON + 16)

    first, second = alert_marks()
    switch = "experiment:new-planner"
    assert list_requests() == [
        (switch, first, False),
        (switch, first, True),
        (switch, second, False),
    ]


@pytest.mark.parametrize(
    ("on", "rules", "acts"),
    [
        ("page", [TICKET], False),
        ("ticket", [TICKET], True),
        ("any", [TICKET], True),
        ("ticket", None, False),
    ],
)
def test_actions_are_for_the_severity_that_they_name(on, rules, acts):
    more = {"rules": rules} if rules else {}
    create_burning_slo(after=[BAD] * 10, actions=[{**STOP, "on": on}], **more)

    evaluate_minutes(NOON, NOON + 8)

    assert bool(list_requests()) is acts


def test_ramps_of_the_service_are_held_while_the_alert_is_open():
    factories.slo("core-latency")
    factories.slo("elsewhere", service="billing")
    create_burning_slo(after=BRIEFLY, actions=[HOLD])

    evaluate_minutes(NOON, NOON + 2)

    hold = Hold.objects.get()
    assert (hold.key, hold.service) == (f"alert:{alert().pk}", "core")
    assert hold.slos == ["core-availability", "core-latency"]
    assert hold.why == f"alert {alert().pk}, open since 21 Jun 00:02 UTC: {alert().summary}"
    assert hold.path == f"/alerts/{alert().pk}/"
    evaluate_minutes(NOON + 3, NOON + 8)
    assert not Hold.objects.exists()


def test_what_came_and_went_while_nobody_judged_acts_upon_nothing():
    create_burning_slo(after=[*BRIEFLY, *[GOOD] * 10], actions=[STOP, HOLD])
    evaluate_minutes(NOON)

    tick.evaluate_due_minutes(due_at(NOON + 20))

    assert alert().resolved_at is not None
    assert not list_requests()
    assert not Hold.objects.exists()


def test_an_action_that_fails_open_does_nothing_while_nothing_is_known():
    create_burning_slo(after=[NONE] * 40, actions=[STOP, HOLD])

    evaluate_minutes(NOON, NOON + 30)

    assert not list_requests()
    assert not Hold.objects.exists()


def test_an_action_that_fails_closed_acts_after_five_minutes_of_unknown():
    create_burning_slo(after=[NONE] * 40, actions=[CLOSED, {**HOLD, "on_unknown": "act"}])
    # 1 h stays known until 6 of its minutes are left; 5 m is unknown from the first on. It is ok
    # while one of both is known and does not burn.
    evaluate_minutes(NOON, NOON + 58)
    assert not list_requests()

    evaluate_minutes(NOON + 59, NOON + 62)

    assert [switch for switch, _, _ in list_requests()] == ["experiment:new-planner"]
    assert Hold.objects.get().why == "The SLO core-availability had no data for 5 minutes"


def test_what_failed_closed_is_over_once_something_is_known_and_may_happen_again():
    slo = create_burning_slo(actions=[CLOSED, {**HOLD, "on_unknown": "act"}])
    Slo.objects.filter(pk=slo.pk).update(min_events=10**9)
    evaluate_minutes(NOON, NOON + 4)
    assert not list_requests()
    evaluate_minutes(NOON + 5)
    assert [over for _, _, over in list_requests()] == [False]
    assert Hold.objects.count() == 1

    Slo.objects.filter(pk=slo.pk).update(min_events=0)
    evaluate_minutes(NOON + 7)
    assert [over for _, _, over in list_requests()] == [False, True]
    assert not Hold.objects.exists()

    Slo.objects.filter(pk=slo.pk).update(min_events=10**9)
    evaluate_minutes(NOON + 8, NOON + 14)
    assert [over for _, _, over in list_requests()] == [False, True, False]
