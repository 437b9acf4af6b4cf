"""A dry run answers what would be, refuses what would be refused, and writes nothing."""

import pytest

from controlplane.core.clock import db_now
from switches.models import Episode, Publication, Switch
from switches.tests.instances import report_version

FINANCE = "/switches/segment/finance"
RELEASE = {"justification": "duplicate charges refunded, queue empty"}
LATER = {"expires_in": "2d", "reason": "refund job is still running"}
PERMANENT = {**LATER, "expires_in": "permanent"}
RESOURCE = {"id", "state", "allow_percent", "reason", "expires_at", "permanent", "version"}
pytestmark = pytest.mark.django_db


def read_counts():
    """Return everything that an action could have written."""
    return Switch.objects.count(), Episode.objects.count(), Publication.objects.get().version


def actions(api):
    return [row["action"] for row in api.get("/audit/").json()["results"]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{FINANCE}/engage", {"reason": "card payments charged twice", "expires_in": "1h"}),
        (f"{FINANCE}/engage", {"reason": "card payments charged twice", "expires_in": "permanent"}),
        ("/switches/global/all/extend", LATER),
        ("/switches/global/all/extend", {**LATER, "expires_in": "permanent"}),
        ("/switches/global/all/acknowledge", {}),
        ("/switches/global/all/release", RELEASE),
        ("/switches/global/all/undo", {}),
        ("/switches/feature/beta/release", RELEASE),
        (f"{FINANCE}/", {"owner": "payments"}),
    ],
)
def test_dry_run_answers_what_would_be_and_writes_nothing(operator, path, body):
    operator.engage("global:all")
    operator.engage("feature:beta")
    before, said_before = read_counts(), actions(operator)
    states = operator.get("/switches/").json()

    method = "patch" if path.endswith("/") else "post"
    response = operator.send(method, path, {**body, "dry_run": True})

    assert response.status_code == 200
    assert response.json()["dry_run"] is True
    assert set(response.json()) >= RESOURCE
    assert read_counts() == before
    assert actions(operator) == said_before
    assert operator.get("/switches/").json() == states
    assert operator.get("/approvals/").json()["results"] == []


def test_dry_run_shows_the_state_it_would_have(operator):
    engaged = operator.engage("segment:finance", dry_run=True).json()
    operator.engage("segment:finance")
    released = operator.post(f"{FINANCE}/release", {**RELEASE, "dry_run": True}).json()

    assert engaged["state"] == "engaged"
    assert (released["state"], released["allow_percent"]) == ("ramping", 5)
    assert (released["ramp"]["id"], released["ramp"]["state"]) == (None, "running")


def test_dry_run_of_the_first_change_has_no_effect_to_tell_of(operator):
    assert operator.engage("segment:finance", dry_run=True).json()["effect"] is None


@pytest.mark.parametrize(
    ("action", "body"),
    [("release", RELEASE), ("extend", LATER), ("extend", PERMANENT), ("undo", {})],
)
def test_dry_run_tells_the_effect_of_what_is_published(operator, action, body):
    operator.engage("segment:finance")
    report_version("core/a1", 1, db_now())
    before = operator.get(f"{FINANCE}/").json()["effect"]

    response = operator.post(f"{FINANCE}/{action}", {**body, "dry_run": True}).json()

    assert response["effect"] == before
    assert (before["version"], before["applied"]) == (1, 1)


def test_dry_run_refuses_what_would_be_refused(operator):
    operator.engage("segment:finance")

    assert operator.engage("segment:finance", dry_run=True).status_code == 409
    assert operator.engage("segment:risk", dry_run=True, reason="x").status_code == 400


def test_dry_run_spelt_false_is_no_dry_run(operator):
    assert "dry_run" not in operator.engage("segment:finance", dry_run=False).json()
    assert operator.get(f"{FINANCE}/").json()["state"] == "engaged"
