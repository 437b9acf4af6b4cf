"""Trip requests of other apps, decided like those of monitors."""

import threading
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from controlplane.core.tasks import purge_trip_requests
from controlplane.core.trip_requests import services as trip_requests
from controlplane.core.trip_requests.models import TripRequest
from switches.models import Switch, SwitchState
from switches.trips import services
from switches.trips.tests.requests import FLAG, NOON, noon_plus, release

pytestmark = pytest.mark.django_db
ORACLE = "segment:oracle"


def ask(key="outage:core->oracle:1", now=NOON, **fields):
    given = {
        "switch": ORACLE,
        "source": "provider-outage",
        "fingerprint": "breaker:core->oracle",
        "reason": "Outage of oracle: breakers are open in 6 of 8 instances.",
        "evidence": {"open": 6, "instances": 8},
        "expires_in": "1h",
        **fields,
    }
    return trip_requests.request_trip(key=key, now=now, **given)


def over(key, now, switch=ORACLE):
    return trip_requests.report_cause_over(
        key=f"{key}:over",
        switch=switch,
        source="provider-outage",
        fingerprint="breaker:core->oracle",
        now=now,
    )


def is_engaged(switch=ORACLE):
    return Switch.objects.filter(pk=switch).in_state(SwitchState.ENGAGED).exists()


def test_an_outage_stops_its_segment_by_the_policy_for_providers():
    ask()

    assert services.decide_open_requests(NOON) == 1

    request = TripRequest.objects.get()
    assert request.tripped
    assert "provider-outage" in request.why
    assert is_engaged()
    assert services.decide_open_requests(NOON) == 0


def test_the_global_switch_is_left_to_people():
    ask(switch="global:all")

    services.decide_open_requests(NOON)

    assert TripRequest.objects.get().tripped is False
    assert not is_engaged("global:all")


def test_one_that_makes_no_sense_is_answered_and_stands_in_nobodys_way():
    ask("first", switch="nonsense")
    ask("second")

    assert services.decide_open_requests(NOON) == 2

    assert TripRequest.objects.get(key="first").tripped is False
    assert is_engaged()


def test_an_error_of_ours_is_an_answer_and_stands_in_nobodys_way():
    ask("first", evidence={"open": 6})
    ask("second", fingerprint="breaker:core->other")

    def decide(request, now):
        if request.key == "first":
            raise ZeroDivisionError
        return True, "stopped"

    assert trip_requests.decide_open(decide, NOON) == 2

    first = TripRequest.objects.get(key="first")
    assert (first.tripped, first.decided_at) == (False, NOON)
    assert "An internal error" in first.why
    assert TripRequest.objects.get(key="second").tripped


def test_what_the_database_refuses_for_now_is_asked_again_and_keeps_its_turn():
    ask("one")
    over("one", NOON)
    ask("other", fingerprint="breaker:core->other")
    decided = []

    def decide(request, now):
        if request.key == "one" and not decided:
            decided.append("-")
            raise OperationalError("deadlock detected")
        decided.append(request.key)
        return True, "stopped"

    assert trip_requests.decide_open(decide, NOON) == 1
    assert trip_requests.decide_open(decide, NOON) == 2
    assert decided == ["-", "other", "one", "one:over"]


@pytest.mark.django_db(transaction=True)
def test_what_is_over_is_not_decided_while_another_decides_what_was_asked():
    ask("one")
    over("one", NOON)
    recorded = []

    def decide(request, now):
        if request.key == "one":
            other = threading.Thread(target=lambda: recorded.append(meanwhile()))
            other.start()
            other.join(10)
        return True, "done"

    def meanwhile():
        try:
            return trip_requests.decide_open(lambda *_: (True, "too early"), NOON)
        finally:
            connection.close()

    assert trip_requests.decide_open(decide, NOON) == 2
    assert recorded == [0]


def test_answers_are_kept_for_five_weeks_and_open_requests_for_ever():
    ask("old")
    services.decide_open_requests(NOON)
    ask("open", fingerprint="breaker:core->other")

    assert purge_trip_requests(NOON + timedelta(days=35)) == 0
    assert purge_trip_requests(NOON + timedelta(days=35, seconds=1)) == 1
    assert TripRequest.objects.get().key == "open"


def test_the_same_outage_does_not_stop_it_again_once_a_person_let_it_flow():
    ask("one", switch=FLAG)
    services.decide_open_requests(NOON)
    release(noon_plus(minutes=5), FLAG)

    ask("two", noon_plus(minutes=90), switch=FLAG)
    services.decide_open_requests(noon_plus(minutes=90))

    assert TripRequest.objects.get(key="two").tripped is False
    assert not is_engaged(FLAG)


def test_a_new_outage_stops_it_again_after_the_first_was_over():
    ask("one", switch=FLAG)
    services.decide_open_requests(NOON)
    over("one", noon_plus(minutes=3), switch=FLAG)
    services.decide_open_requests(noon_plus(minutes=3))
    release(noon_plus(minutes=5), FLAG)

    ask("two", noon_plus(minutes=90), switch=FLAG)
    services.decide_open_requests(noon_plus(minutes=90))

    assert TripRequest.objects.get(key="two").tripped
    assert is_engaged(FLAG)


def test_an_outage_that_is_over_releases_nothing():
    ask("one")
    services.decide_open_requests(NOON)

    over("one", noon_plus(minutes=3))
    services.decide_open_requests(noon_plus(minutes=3))

    assert is_engaged()
    assert "stays engaged" in TripRequest.objects.get(key="one:over").why
