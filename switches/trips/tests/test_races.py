"""Concurrent requests for one switch: it is stopped once."""

import time

import pytest

from controlplane.core.actors import Actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, as_role, at_once, person, token_text
from controlplane.core.roles import Role
from switches.models import Episode, Publication, Trip
from switches.trips import resolution

pytestmark = pytest.mark.django_db(transaction=True)
WISH = {
    "switch": "feature:checkout",
    "source": "latency-monitor",
    "fingerprint": "p95-high",
    "reason": "p95 of checkout above 5 s for ten minutes",
    "evidence": {"p95_seconds": 7.4},
    "expires_in": "1h",
}


def machines(count):
    text = token_text(person("admin", "owner"), ["switches:trip"])
    return [Api(authorization=f"Bearer {text}") for _ in range(count)]


def test_of_twenty_equal_trips_one_engages():
    version = Publication.objects.get().version

    responses = at_once(*(lambda api=api: api.post("/switches/trip", WISH) for api in machines(20)))

    assert {response.status_code for response in responses} == {200}
    assert sum(response.json()["tripped"] for response in responses) == 1
    assert len({response.json()["trip"] for response in responses}) == 1
    assert Episode.objects.count() == 1
    assert Publication.objects.get().version == version + 1
    assert Trip.objects.get(outcome="tripped").repeats == 19
    assert AuditEntry.objects.filter(action="switch.engaged").count() == 1


def test_of_twenty_different_alerts_one_engages_and_all_are_kept():
    responses = at_once(
        *(
            lambda api=api, number=number: api.post(
                "/switches/trip", {**WISH, "fingerprint": f"f{number}"}
            )
            for number, api in enumerate(machines(20))
        )
    )

    assert sum(response.json()["tripped"] for response in responses) == 1
    assert Trip.objects.filter(outcome="engaged").count() == 19
    assert Trip.objects.exclude(episode=Episode.objects.get()).count() == 0


def test_machine_and_person_at_once_leave_one_episode():
    operator, (machine,) = as_role("operator"), machines(1)

    engaged, tripped = at_once(
        lambda: operator.engage("feature:checkout"),
        lambda: machine.post("/switches/trip", WISH),
    )

    assert tripped.status_code == 200
    assert (engaged.status_code == 200) != tripped.json()["tripped"]
    assert Episode.objects.count() == 1
    assert Trip.objects.get().episode == Episode.objects.get()


def test_budget_holds_when_many_ask_at_once():
    responses = at_once(
        *(
            lambda api=api, number=number: api.post(
                "/switches/trip", {**WISH, "switch": f"feature:f{number}"}
            )
            for number, api in enumerate(machines(16))
        )
    )

    assert sum(response.json()["tripped"] for response in responses) == 10
    assert Episode.objects.count() == 10


def test_two_hooks_with_the_same_alerts_at_once_engage_each_switch_once():
    alerts = [
        {
            "status": "firing",
            "labels": {"alertname": "Down", "switchgear_switch": f"feature:f{number}"},
            "fingerprint": f"a{number}",
        }
        for number in range(5)
    ]

    responses = at_once(
        *(
            lambda api=api, found=found: api.post("/hooks/alertmanager", {"alerts": found})
            for api, found in zip(machines(2), (alerts, alerts[::-1]), strict=True)
        )
    )

    results = [result for response in responses for result in response.json()["results"]]
    assert sum(result["tripped"] for result in results) == 5
    assert Episode.objects.count() == 5


def storm(count, name="Down"):
    return [
        {
            "status": "firing",
            "labels": {"alertname": name, "switchgear_switch": f"feature:f{number}"},
            "fingerprint": f"a{number}",
        }
        for number in range(count)
    ]


def test_person_stops_everything_while_machines_are_heard():
    operator, (machine,) = as_role("operator"), machines(1)
    ended = {}

    def send_storm():
        response = machine.post("/hooks/alertmanager", {"alerts": storm(100)})
        ended["storm"] = time.monotonic()
        return response

    def stop_everything():
        deadline = time.monotonic() + 30
        while not Trip.objects.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        response = operator.engage("global:all")
        ended["engage"] = time.monotonic()
        return response

    tripped, engaged = at_once(send_storm, stop_everything)

    assert tripped.status_code == 200
    assert engaged.status_code in {200, 201}
    assert ended["engage"] < ended["storm"]


def test_hooks_and_people_who_settle_do_not_lock_each_other_out():
    operator, pair = as_role("operator"), machines(2)
    alerts = storm(12, "DataLeak")
    for number in range(12):
        pair[0].post("/hooks/alertmanager", {"alerts": [alerts[number]]})
    again = [{**alert, "fingerprint": f"b{alert['fingerprint']}"} for alert in alerts]
    ids = list(Trip.objects.filter(outcome="person").order_by("id").values_list("id", flat=True))

    responses = at_once(
        lambda: pair[0].post("/hooks/alertmanager", {"alerts": again}),
        lambda: pair[1].post("/hooks/alertmanager", {"alerts": again[::-1]}),
        *(lambda pk=pk: dismissed(pk) for pk in ids[:4]),
        lambda: operator.engage("feature:f11"),
        settle_now,
    )

    assert [response.status_code for response in responses[:2]] == [200, 200]
    assert all(result["why"] for response in responses[:2] for result in response.json()["results"])


def dismissed(pk):
    scopes = frozenset({"switches:write"})
    actor = Actor(type="user", name="kim", role=Role.OPERATOR, scopes=scopes)
    return resolution.dismiss_trip(trip_id=pk, reason="load test", actor=actor, now=db_now())


def settle_now():
    return resolution.close_engaged(db_now())
