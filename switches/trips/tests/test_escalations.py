"""Escalations of trips to people: none lost, and limited in number."""

import pytest

from controlplane.core.outbox.escalation import Escalation
from switches import services as switches
from switches.models import Episode, Trip, TripPolicy
from switches.trips import escalations, notifications, resolution
from switches.trips.tests.requests import (
    FLAG,
    NOON,
    engage,
    find_messages,
    kim,
    noon_plus,
    release,
    request_stop,
    resolve,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("slack_configured")]
LEAK = {"source": "leak-detector", "switch": "segment:finance"}


def questions(**more):
    return Escalation.objects.filter(subject__startswith="trip:", closed_at=None, **more)


def dismiss(result, now):
    resolution.dismiss_trip(
        trip_id=result.trip.pk, reason="load test", actor=kim().as_actor(), now=now
    )


def test_second_leak_after_a_dismissed_one_is_asked_about_and_told():
    dismiss(request_stop(**LEAK), noon_plus(minutes=2))

    second = request_stop(noon_plus(minutes=5), **LEAK, fingerprint="another")

    assert questions().get().subject == f"trip:{second.trip.pk}"
    assert find_messages("trip.waits").count() == 2


def test_dismissed_alert_is_not_said_to_be_asked_about():
    first = request_stop(**LEAK)
    assert "Waiting for a decision since" in request_stop(noon_plus(minutes=1), **LEAK).why

    dismiss(first, noon_plus(minutes=2))

    assert "People decided about it" in request_stop(noon_plus(minutes=3), **LEAK).why


def test_another_alert_about_the_same_joins_what_is_asked():
    first = request_stop(**LEAK)

    second = request_stop(noon_plus(minutes=5), **LEAK, fingerprint="b")

    question = questions().get()
    assert escalations.member_trips(question) == [first.trip.pk, second.trip.pk]
    assert "segment:finance (fingerprint b)" in question.facts["why"]
    assert "fingerprint b" in resolution.list_waiting()[0].why
    assert (
        "Waiting for a decision since"
        in request_stop(noon_plus(minutes=6), **LEAK, fingerprint="b").why
    )
    dismiss(first, noon_plus(minutes=7))
    assert "fingerprint b" in Trip.objects.get(pk=first.trip.pk).why


def test_routes_that_were_told_are_not_told_again_at_once():
    request_stop(**LEAK)

    assert questions().get().notified_at == NOON


def test_machines_short_trip_settles_nothing():
    request_stop(**LEAK)

    assert request_stop(noon_plus(minutes=1), switch="segment:finance", fingerprint="slow").tripped

    assert len(resolution.list_waiting()) == 1
    assert resolution.close_engaged(noon_plus(minutes=5)) == 0


def test_leak_that_comes_while_a_machine_stopped_it_is_asked_about():
    assert request_stop(switch="segment:finance").tripped

    result = request_stop(noon_plus(minutes=1), **LEAK, fingerprint="leak")

    assert result.trip.outcome == "person"
    assert len(resolution.list_waiting()) == 1


def test_leak_that_comes_while_a_person_stopped_it_is_not():
    engage(NOON, "segment:finance")

    assert request_stop(noon_plus(minutes=1), **LEAK).trip.outcome == "engaged"
    assert resolution.list_waiting() == []


def test_engaging_that_was_undone_or_expired_settles_nothing():
    request_stop(**LEAK)
    engage(noon_plus(minutes=1), "segment:finance")
    assert resolution.close_engaged(noon_plus(minutes=1, seconds=5)) == 0

    switches.undo(
        scope="segment", key="finance", actor=kim().as_actor(), now=noon_plus(minutes=1, seconds=9)
    )
    assert resolution.close_engaged(noon_plus(minutes=5)) == 0
    assert len(resolution.list_waiting()) == 1
    Episode.objects.update(ended_how="expired")
    assert resolution.close_engaged(noon_plus(minutes=5)) == 0


def test_engaging_that_was_released_settles_it():
    request_stop(source="leak-detector")
    engage(noon_plus(minutes=1))
    release(noon_plus(minutes=1, seconds=10))

    assert resolution.close_engaged(noon_plus(minutes=1, seconds=12)) == 1


def test_with_the_budget_spent_every_refused_switch_is_in_the_question():
    TripPolicy.objects.filter(trigger="provider-outage").update(budget_per_hour=1)
    request_stop(switch="feature:a")

    for number in range(4):
        request_stop(noon_plus(minutes=1 + number), switch=f"feature:g{number}")

    question = questions(facts__once="budget:provider-outage").get()
    switches_named = [member["switch"] for member in question.facts["others"]]
    assert (question.facts["switch"], switches_named) == (
        "feature:g0",
        ["feature:g1", "feature:g2", "feature:g3"],
    )
    assert all(name in resolution.list_waiting()[0].why for name in switches_named)


def test_question_of_several_ends_with_the_last_of_them():
    TripPolicy.objects.filter(trigger="provider-outage").update(budget_per_hour=1)
    request_stop(switch="feature:a")
    for minute, name in enumerate(("feature:b", "feature:c"), 1):
        request_stop(noon_plus(minutes=minute), switch=name)

    resolve(noon_plus(minutes=5), switch="feature:b")
    assert questions().count() == 1
    engage(noon_plus(minutes=5), "feature:b")
    assert resolution.close_engaged(noon_plus(minutes=9)) == 0
    resolve(noon_plus(minutes=10), switch="feature:c")
    assert questions().count() == 0


def test_one_program_can_ask_people_only_so_much(monkeypatch):
    monkeypatch.setattr(escalations, "MAX_PER_PROGRAM", 6)
    TripPolicy.objects.filter(trigger="data-leak").update(sources=["*"], position=0)
    TripPolicy.objects.exclude(trigger="data-leak").delete()

    for number in range(14):
        result = request_stop(
            noon_plus(seconds=number), source=f"s{number % 8}", switch=f"feature:f{number}"
        )

    assert questions().count() == escalations.MAX_PER_PROGRAM + 1
    rest = questions(facts__once="many:token:monitor").get()
    assert len(escalations.member_trips(rest)) == 8
    assert result.trip.outcome == "person"
    again = request_stop(noon_plus(minutes=2), source="s5", switch="feature:f13")
    assert "Waiting for a decision since" in again.why
    request_stop(noon_plus(hours=2), source="s1", switch="feature:later")
    assert questions(facts__switch="feature:later").count() == 1


def test_one_source_can_ask_people_only_so_much():
    for number in range(escalations.MAX_PER_SOURCE + 3):
        request_stop(noon_plus(seconds=number), source="leak-detector", switch=f"feature:f{number}")

    assert questions().count() == escalations.MAX_PER_SOURCE + 1


def test_all_that_wait_are_seen_however_many():
    rows = [
        Trip(
            switch=f"feature:f{number}", source="leak", fingerprint="a", reason="leak",
            outcome="person", why="", at=NOON, last_at=NOON, by="token:a",
        )
        for number in range(600)
    ]  # fmt: skip
    for row in Trip.objects.bulk_create(rows):
        notifications.open_escalation(row, {"once": f"x:{row.pk}"}, announced=False, now=NOON)

    assert len(resolution.list_waiting()) == 600


def test_changing_fingerprints_at_an_engaged_switch_are_told_once_an_hour():
    engage(NOON)

    for number in range(50):
        request_stop(noon_plus(seconds=number), fingerprint=f"f{number}")

    assert find_messages("trip.engaged").count() == 1
    assert Trip.objects.filter(outcome="engaged").count() == 50


@pytest.mark.parametrize(
    "reason", ["x" * 2000, "결제 이중 청구 " * 200, "🧨" * 500, "a&b=c " * 300]
)
def test_link_to_the_form_stays_short(reason):
    result = request_stop(**LEAK, reason=reason)

    path = notifications.engage_path(result.trip)
    assert path.isascii()
    assert len(path) <= notifications.MAX_LINK_BYTES
    assert path.endswith("%E2%80%A6")
    assert FLAG not in path
