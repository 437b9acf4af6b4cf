"""Trips over HTTP: the contract's lines, one by one."""

from datetime import timedelta

import pytest

from controlplane.core.http.tests.callers import Api, as_role, person, token_text, with_token
from controlplane.core.people.roles import ALL_SCOPES
from switches.models import Episode, Trip
from switches.trips.tests.test_races import WISH

pytestmark = pytest.mark.django_db
TRIP, HOOK, ARMS = "/switches/trip", "/hooks/alertmanager", "/experiments/ranking/arms"
SPLIT = {"control": {"expected": 0.5, "count": 1000}, "b": {"expected": 0.5, "count": 1300}}
ENDPOINTS = [(TRIP, WISH), (HOOK, {"alerts": []}), (ARMS, {"arms": SPLIT})]


@pytest.fixture
def machine():
    return with_token("switches:trip")


def firing(switch="feature:checkout", **more):
    labels = {"alertname": "ProviderDown", "switchgear_switch": switch, **more.pop("labels", {})}
    return {
        "status": "firing",
        "labels": labels,
        "annotations": {"summary": "OpenAI answers 5xx since 02:10"},
        "fingerprint": "c8f2a1",
        **more,
    }


def hook(machine, *alerts, **payload):
    return machine.post(HOOK, {"version": "4", "alerts": list(alerts), **payload})


@pytest.mark.parametrize("path", [TRIP, f"{TRIP}/"])
def test_trip_answers_whether_and_why(machine, path):
    response = machine.post(path, WISH)

    assert response.status_code == 200
    assert set(response.json()) == {"tripped", "why", "trip", "switch"}
    assert response.json()["tripped"] is True
    assert response.json()["switch"]["state"] == "engaged"
    assert response.json()["switch"]["reason"] == WISH["reason"]
    assert machine.post(TRIP, WISH).json()["tripped"] is False


@pytest.mark.parametrize(("path", "body"), ENDPOINTS)
def test_only_the_scope_for_trips_opens_it(path, body):
    others = Api(x_api_key=token_text(person("admin", "o"), ALL_SCOPES - {"switches:trip"}))

    assert with_token("switches:trip").post(path, body).status_code == 200
    assert others.post(path, body).status_code == 403
    assert as_role("operator").post(path, body).status_code == 200
    assert as_role("viewer").post(path, body).status_code == 403
    assert Api().post(path, body).status_code == 401


def test_token_for_trips_can_do_nothing_else(machine):
    machine.post(TRIP, WISH)

    release = machine.post("/switches/feature/checkout/release", {"justification": "all is well"})
    assert release.status_code == 403
    assert machine.engage("feature:other").status_code == 403
    assert machine.get("/trip-policies/").status_code == 403


@pytest.mark.parametrize("path", [TRIP, HOOK, ARMS])
@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"", "application/json", 400),
        (b'{"a":"\\u0000"}', "application/json", 400),
        (b"alerts=1", "application/x-www-form-urlencoded", 415),
        (b'{"a":"' + b"x" * 70_000 + b'"}', "application/json", 413),
    ],
)
def test_what_cannot_be_read_is_a_problem(machine, path, content, kind, status):
    response = machine.send("post", path, content, content_type=kind)

    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("missing", ["switch", "source", "fingerprint", "reason"])
def test_missing_field_is_named(machine, missing):
    body = {name: value for name, value in WISH.items() if name != missing}

    response = machine.post(TRIP, body)

    assert response.status_code == 400
    assert set(response.json()["errors"]) == {missing}


def test_dry_run_trips_nothing(machine):
    response = machine.post(TRIP, {**WISH, "dry_run": True})

    assert response.json()["tripped"] is True
    assert response.json()["dry_run"] is True
    assert response.json()["switch"]["state"] == "released"
    assert not Trip.objects.exists()
    assert not Episode.objects.exists()


def test_same_idempotency_key_gets_the_same_answer(machine):
    first = machine.post(TRIP, WISH, idempotency_key="k1")
    again = machine.post(TRIP, WISH, idempotency_key="k1")

    assert again.json() == first.json()
    assert again.json()["tripped"] is True
    assert again["Idempotent-Replayed"] == "true"
    assert Trip.objects.count() == 1


def test_monitor_can_say_that_it_is_over(machine):
    machine.post(TRIP, WISH)

    response = machine.post(
        TRIP, {"switch": WISH["switch"], "source": "m", "fingerprint": "p95-high",
               "status": "resolved"}
    )  # fmt: skip

    assert response.json()["tripped"] is False
    assert "stays engaged" in response.json()["why"]
    assert response.json()["switch"]["state"] == "engaged"


def test_unicode_survives(machine):
    wish = {**WISH, "reason": "결제 이중 청구 🧨 \u202eevil", "evidence": {"경보": "이중 청구 ✓"}}

    machine.post(TRIP, wish)

    episode = Episode.objects.get()
    assert episode.reason == "결제 이중 청구 🧨 evil"
    assert episode.evidence == {"경보": "이중 청구 ✓"}


def test_alert_trips_what_its_label_names(machine):
    response = hook(machine, firing(labels={"switchgear_expires_in": "2h"}), groupKey="{}")

    (result,) = response.json()["results"]
    assert response.status_code == 200
    assert (result["fingerprint"], result["switch"], result["tripped"]) == (
        "c8f2a1",
        "feature:checkout",
        True,
    )
    episode = Episode.objects.get()
    assert episode.reason == "ProviderDown: OpenAI answers 5xx since 02:10"
    assert episode.expires_at - episode.engaged_at == timedelta(hours=2)
    assert episode.evidence["annotations"] == {"summary": "OpenAI answers 5xx since 02:10"}


def test_alert_that_repeats_resolves_and_repeats_stops_once(machine):
    answers = [
        hook(machine, firing(status=status)).json()["results"][0]
        for status in ("firing", "firing", "resolved", "resolved", "firing")
    ]

    assert [answer["tripped"] for answer in answers] == [True, False, False, False, False]
    assert "stays engaged until somebody releases it" in answers[2]["why"]
    assert Episode.objects.get().ended_at is None


def test_whatever_is_wrong_with_an_alert_is_told_in_a_200_and_kept(machine):
    response = hook(
        machine,
        firing("nowhere:a"),
        firing("feature:ok", fingerprint="f2"),
        firing("feature:x", labels={"switchgear_expires_in": "permanent"}),
        firing("global:all"),
        firing("", fingerprint="f3"),
        {},
        truncatedAlerts=7,
    )

    results = response.json()["results"]
    assert response.status_code == 200
    assert [result["tripped"] for result in results] == [False, True, False, False, False, False]
    assert [result["switch"] for result in results][-2:] == [None, None]
    assert all(result["why"] for result in results)
    assert "never engages for good" in results[2]["why"]
    assert response.json()["truncated"] == 7
    assert sorted(Trip.objects.values_list("switch", "outcome")) == [
        ("feature:ok", "tripped"),
        ("feature:x", "refused"),
        ("global:all", "refused"),
        ("nowhere:a", "refused"),
    ]


def test_wrong_label_is_kept_once_however_often_it_repeats(machine):
    for _ in range(3):
        hook(machine, firing("nowhere:a"))

    assert Trip.objects.get().repeats == 2


@pytest.mark.parametrize("body", [{}, {"alerts": None}, {"alerts": {}}, {"alerts": ["x"]}])
def test_hook_without_alerts_is_400(machine, body):
    response = machine.post(HOOK, body)

    assert response.status_code == 400
    assert any(name.startswith("alerts") for name in response.json()["errors"])


def test_security_alerts_are_left_to_a_person(machine):
    (result,) = hook(machine, firing(labels={"alertname": "SecurityBreach"})).json()["results"]

    assert result["tripped"] is False
    assert Trip.objects.get().outcome == "person"


def test_trips_are_listed_newest_first_in_pages(machine):
    reader = as_role("viewer")
    for number in range(3):
        machine.post(TRIP, {**WISH, "switch": f"feature:f{number}"})

    page = reader.get("/trips/", {"limit": 2}).json()
    assert [row["switch"] for row in page["results"]] == ["feature:f2", "feature:f1"]
    assert page["next"]
    one = reader.get("/trips/", {"switch": "feature:f0", "outcome": "tripped"}).json()["results"]
    assert [row["evidence"] for row in one] == [WISH["evidence"]]
    assert machine.get("/trips/").status_code == 403
