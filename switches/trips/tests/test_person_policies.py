"""Requests that policies leave to people: escalated, repeated and closed."""

import pytest

from controlplane.core.outbox.escalation import Escalation
from switches.models import Episode, Rule, Trip, TripPolicy
from switches.trips import resolution
from switches.trips.tests.requests import (
    FLAG,
    NOON,
    engage,
    find_messages,
    kim,
    list_audit_actions,
    list_outcomes,
    noon_plus,
    release,
    request_stop,
    resolve,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("slack_configured")]


def test_third_trip_within_an_hour_locks_the_switch_and_calls_a_person():
    for number in range(3):
        assert request_stop(noon_plus(minutes=10 * number), fingerprint=f"f{number}").tripped
        release(noon_plus(minutes=10 * number + 5))

    locked = request_stop(noon_plus(minutes=30), fingerprint="f9")
    request_stop(noon_plus(minutes=31), fingerprint="f10")

    assert "locked" in locked.why
    (escalation,) = Escalation.objects.filter(subject__startswith="trip:")
    assert escalation.subject == f"trip:{locked.trip.pk}"
    assert request_stop(noon_plus(minutes=30), fingerprint="f9", switch="feature:other").tripped
    assert request_stop(noon_plus(minutes=81), fingerprint="f9").tripped


def test_spent_budget_refuses_and_calls_a_person_once_an_hour():
    TripPolicy.objects.filter(trigger="provider-outage").update(budget_per_hour=2)
    for number in range(2):
        assert request_stop(noon_plus(minutes=number), switch=f"feature:f{number}").tripped

    refused = [
        request_stop(noon_plus(minutes=2 + number), switch=f"feature:g{number}")
        for number in range(3)
    ]

    assert all("are used up" in result.why for result in refused)
    assert Escalation.objects.filter(facts__once="budget:provider-outage").count() == 1
    assert request_stop(noon_plus(minutes=9), switch="experiment:a").tripped
    assert request_stop(noon_plus(minutes=62), switch="feature:g0").tripped


def test_safety_rule_refuses_and_calls_a_person():
    Rule.objects.create(
        name="one feature at a time",
        kind="at_most",
        switches=["feature:*"],
        n=1,
        created_at=NOON,
        created_by="user:kim",
        changed_at=NOON,
    )
    engage(NOON, "feature:other")

    result = request_stop(noon_plus(minutes=1))

    assert not result.tripped
    assert "one feature at a time" in result.why
    assert Trip.objects.get().outcome == "refused"
    assert not Episode.objects.filter(switch=FLAG).exists()
    assert Escalation.objects.get(subject=f"trip:{result.trip.pk}").facts["switch"] == FLAG


def test_what_is_a_persons_decision_calls_people_once_and_waits():
    result = request_stop(source="leak-detector", switch="segment:finance")
    request_stop(noon_plus(minutes=5), source="leak-detector", switch="segment:finance")
    other = request_stop(
        noon_plus(minutes=6), source="leak-detector", switch="segment:finance", fingerprint="b"
    )

    assert [result.trip.outcome, other.trip.outcome] == ["person", "person"]
    escalation = Escalation.objects.get(subject__startswith="trip:")
    assert (escalation.severity, escalation.event) == ("critical", "trip.waits")
    assert escalation.facts["path"].startswith(
        "/switches/engage/?scope=segment&key=finance&reason="
    )
    assert [trip.pk for trip in resolution.list_waiting()] == [result.trip.pk]
    assert not Episode.objects.exists()
    assert find_messages("trip.waits").count() == 1


def test_it_waits_until_somebody_engages():
    result = request_stop(source="leak-detector", switch="segment:finance")

    engage(noon_plus(minutes=3), "segment:finance")

    assert resolution.list_waiting() == []
    assert resolution.close_engaged(noon_plus(minutes=3, seconds=5)) == 0
    assert resolution.close_engaged(noon_plus(minutes=4)) == 1
    question = Escalation.objects.get(subject=f"trip:{result.trip.pk}")
    assert question.closed_at == noon_plus(minutes=4)
    assert resolution.close_engaged(noon_plus(minutes=4)) == 0


def test_or_until_somebody_dismisses_it():
    result = request_stop(source="leak-detector", switch="segment:finance")

    resolution.dismiss_trip(
        trip_id=result.trip.pk, reason="load test", actor=kim().as_actor(), now=noon_plus(minutes=2)
    )

    assert resolution.list_waiting() == []
    assert list_audit_actions() == ["trip.waits", "trip.dismissed"]
    again = request_stop(noon_plus(minutes=5), source="leak-detector", switch="segment:finance")
    assert again.trip.pk == result.trip.pk
    assert resolution.list_waiting() == []


def test_resolved_alert_still_waits_for_the_person_it_asked():
    request_stop(source="leak-detector", switch="segment:finance")

    resolve(noon_plus(minutes=5), switch="segment:finance")

    assert len(resolution.list_waiting()) == 1


def test_resolved_refusal_waits_for_nobody():
    TripPolicy.objects.filter(trigger="provider-outage").update(budget_per_hour=1)
    request_stop(switch="feature:a")
    request_stop(noon_plus(minutes=1))
    assert len(resolution.list_waiting()) == 1

    resolve(noon_plus(minutes=5))

    assert resolution.list_waiting() == []


def test_global_is_left_to_a_person_even_if_the_table_is_tampered_with():
    TripPolicy.objects.update(gate="automatic")

    result = request_stop(source="security", switch="global:all")

    assert result.trip.outcome == "person"
    assert not Episode.objects.exists()


def test_machine_that_keeps_asking_for_what_it_may_not_is_told_of_once_an_hour():
    for second in range(20):
        request_stop(noon_plus(seconds=second), switch="global:all", fingerprint=f"f{second}")

    assert list_outcomes() == ["refused"] * 20
    assert find_messages("trip.refused").count() == 1
    assert not Escalation.objects.filter(subject__startswith="trip:").exists()
