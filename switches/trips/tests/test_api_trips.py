"""The API of trips, by the lines of its contract."""

import pytest

from controlplane.core.http.tests.callers import Api, as_role, person, token_text, with_token
from controlplane.core.roles import ALL_SCOPES, EXCLUSIVE_SCOPES
from switches.models import Episode, Trip, TripPolicy
from switches.trips.tests.test_races import WISH

pytestmark = pytest.mark.django_db
TRIP, HOOK, ARMS = "/switches/trip", "/hooks/alertmanager", "/experiments/ranking/arms"
SPLIT = {"control": {"expected": 0.5, "count": 1000}, "b": {"expected": 0.5, "count": 1300}}
ENDPOINTS = [(TRIP, WISH), (HOOK, {"alerts": []}), (ARMS, {"arms": SPLIT})]


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
    scopes = ALL_SCOPES - EXCLUSIVE_SCOPES - {"switches:trip"}
    others = Api(x_api_key=token_text(person("admin", "o"), scopes))

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
        (b'{"a":"' + b"x" * (1 << 20) + b'"}', "application/json", 413),
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
    assert response.json()["trip"] is None
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


def test_that_it_is_over_finds_the_fingerprint_as_it_was_sent(machine):
    odd = {**WISH, "fingerprint": "  p95\u202e high\n"}
    machine.post(TRIP, odd)

    machine.post(TRIP, {**odd, "status": "resolved"})

    assert Trip.objects.get().resolved_at is not None


def test_longest_names_and_fingerprints_are_taken(machine):
    long = {"switch": f"segment:{'k' * 120}", "source": "s" * 120, "fingerprint": "f" * 200}

    for source in ("s" * 120, f"{'leak' * 30}"):
        response = machine.post(TRIP, {**WISH, **long, "source": source})
        assert response.status_code == 200, response.content
    assert machine.post(TRIP, {**WISH, **long, "fingerprint": "x"}).status_code == 200


def test_bodies_elsewhere_are_64_kib(machine):
    body = {**WISH, "evidence": {"log": "x" * 70_000}}

    assert machine.post(TRIP, body).status_code == 413


def test_shortened_expiry_is_told(machine):
    TripPolicy.objects.filter(trigger="provider-outage").update(longest_minutes=30)

    body = machine.post(TRIP, {**WISH, "expires_in": "7d"}).json()
    other = machine.post(TRIP, {**WISH, "switch": "feature:b", "expires_in": "30m"}).json()

    assert "Requested 7d, limited to 30m" in body["why"]
    assert "asked for" not in other["why"]


def test_unicode_survives(machine):
    wish = {**WISH, "reason": "결제 이중 청구 🧨 \u202eevil", "evidence": {"경보": "이중 청구 ✓"}}

    machine.post(TRIP, wish)

    episode = Episode.objects.get()
    assert episode.reason == "결제 이중 청구 🧨 evil"
    assert episode.evidence == {"경보": "이중 청구 ✓"}


def test_trips_are_listed_newest_first_in_pages(machine):
    reader = as_role("viewer")
    for number in range(3):
        machine.post(TRIP, {**WISH, "switch": f"feature:f{number}"})

    page = reader.get("/trips/", {"limit": 2}).json()
    assert [row["switch"] for row in page["results"]] == ["feature:f2", "feature:f1"]
    assert page["next"]
    found = reader.get("/trips/", {"switch": "feature:f0", "outcome": "tripped"}).json()["results"]
    assert [row["evidence"] for row in found] == [WISH["evidence"]]
    assert machine.get("/trips/").status_code == 403
