"""The API of release and undo."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.core.http.tests.callers import as_role
from switches.models import Episode

FINANCE = "/switches/segment/finance"
RELEASE = {"justification": "duplicate charges refunded, queue empty"}
LATER = {"expires_in": "2d", "reason": "refund job is still running"}
pytestmark = pytest.mark.django_db


def test_release_at_once_answers_the_released_resource():
    approver = as_role("approver")
    approver.engage("feature:beta")

    response = approver.post("/switches/feature/beta/release", {**RELEASE, "mode": "immediate"})

    switch = response.json()
    assert response.status_code == 200
    assert (switch["state"], switch["allow_percent"]) == ("released", 100)
    empty = ("reason", "engaged_by", "engaged_at", "expires_at", "on_expiry")
    assert [switch[field] for field in empty] == [None] * len(empty)


@pytest.mark.parametrize("fields", [{}, {"mode": "ramp"}, {"mode": None}])
def test_release_begins_a_ramp_unless_it_is_asked_for_at_once(operator, fields):
    operator.engage("segment:finance")

    response = operator.post(f"{FINANCE}/release", {**RELEASE, **fields})

    assert response.status_code == 202
    assert set(response.json()) == {"ramp"}
    ramp = response.json()["ramp"]
    assert (ramp["state"], ramp["allow_percent"], ramp["step_index"]) == ("running", 5, 0)
    assert [step["percent"] for step in ramp["plan"]] == [5, 25, 100]
    switch = operator.get(f"{FINANCE}/").json()
    assert (switch["state"], switch["allow_percent"]) == ("ramping", 5)
    assert switch["ramp"] == ramp["id"]


def test_an_operator_does_not_release_at_once(operator):
    operator.engage("feature:beta")

    response = operator.post("/switches/feature/beta/release", {**RELEASE, "mode": "immediate"})

    assert response.status_code == 403
    assert "approver" in response.json()["detail"]
    assert operator.get("/switches/feature/beta/").json()["state"] == "engaged"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"justification": ""}, "justification"),
        ({"justification": "  "}, "justification"),
        ({"justification": "fixed \x1b[2J"}, "justification"),
        ({"justification": None}, "justification"),
        ({"mode": "slowly"}, "mode"),
        ({"mode": 5}, "mode"),
        ({"plan": [{"percent": 5}]}, "plan[0].percent"),
        ({"plan": "5,25,100"}, "plan"),
        ({"plan": [{"percent": 100}], "mode": "immediate"}, "plan"),
        ({"max_hold_seconds": -1}, "max_hold_seconds"),
    ],
)
def test_wrong_release_is_named_and_the_switch_stays(operator, fields, field):
    operator.engage("segment:finance")

    response = operator.post(f"{FINANCE}/release", {**RELEASE, **fields})

    assert response.status_code == 400
    assert field in response.json()["errors"]
    assert operator.get(f"{FINANCE}/").json()["state"] == "engaged"


@pytest.mark.parametrize("role", ["operator", "approver", "admin"])
def test_release_of_everything_always_waits_for_a_second_person(role):
    somebody = as_role(role)
    somebody.engage("global:all")

    response = somebody.post("/switches/global/all/release", RELEASE)

    assert response.status_code == 202
    assert set(response.json()) == {"approval"}
    assert somebody.get("/switches/global/all/").json()["state"] == "engaged"


def test_second_request_to_release_everything_is_the_same_request(operator):
    operator.engage("global:all")
    first = operator.post("/switches/global/all/release", RELEASE).json()

    second = as_role("approver").post("/switches/global/all/release", RELEASE).json()

    assert second["approval"]["id"] == first["approval"]["id"]


def test_undo_takes_back_an_engage(operator):
    operator.engage("segment:finance")

    response = operator.post(f"{FINANCE}/undo")

    assert (response.status_code, response.json()["state"]) == (200, "released")


def test_undo_is_for_whoever_engaged_and_for_30_seconds(operator):
    operator.engage("segment:finance")
    assert as_role("admin").post(f"{FINANCE}/undo").status_code == 409
    Episode.objects.update(engaged_at=timezone.now() - timedelta(seconds=31))

    assert operator.post(f"{FINANCE}/undo").status_code == 409
    assert operator.get(f"{FINANCE}/").json()["state"] == "engaged"


def test_undo_is_refused_once_something_changed(operator):
    operator.engage("segment:finance")
    operator.post(f"{FINANCE}/extend", LATER)

    assert operator.post(f"{FINANCE}/undo").status_code == 409
