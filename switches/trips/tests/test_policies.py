"""The API of trip policies: permissions and validation."""

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import Api, as_role, person, token_text, with_token
from controlplane.core.roles import ALL_SCOPES, EXCLUSIVE_SCOPES
from switches.models import TripPolicy
from switches.trips.tests.test_races import WISH

pytestmark = pytest.mark.django_db
PATH = "/trip-policies/"


@pytest.fixture
def admin():
    return as_role("admin")


@pytest.fixture
def rows(admin):
    return admin.get(PATH).json()["results"]


def put(api, rows):
    return api.send("put", PATH, {"policies": rows})


def test_it_begins_as_the_source_document_says(rows):
    assert [(row["trigger"], row["gate"]) for row in rows] == [
        ("security-incident", "person"),
        ("data-leak", "person"),
        ("policy-violation", "person"),
        ("srm", "automatic"),
        ("provider-outage", "automatic"),
    ]


def test_what_was_read_can_be_put_back_and_changes_nothing(admin, rows):
    response = admin.send("put", PATH, {"results": rows})

    assert response.status_code == 200
    assert response.json()["results"] == rows
    assert not AuditEntry.objects.filter(action="trip_policy.changed").exists()


def test_change_is_audited_with_what_it_was(admin, rows):
    rows[4]["gate"] = "person"

    assert put(admin, rows).status_code == 200

    entry = AuditEntry.objects.get(action="trip_policy.changed")
    assert '"gate":"automatic"' in entry.before
    assert '"gate":"person"' in entry.after
    machine = with_token("switches:trip")
    assert machine.post("/switches/trip", WISH).json()["tripped"] is False


def test_order_is_that_of_the_rows_and_missing_ones_go(admin, rows):
    new = {"trigger": "ci", "title": "Bad deploy", "sources": ["ci"], "scopes": ["feature"],
           "gate": "automatic"}  # fmt: skip

    stored_rows = put(admin, [new, rows[3], rows[0]]).json()["results"]

    assert [row["trigger"] for row in stored_rows] == ["ci", "srm", "security-incident"]
    assert stored_rows[0]["budget_per_hour"] == 10
    assert TripPolicy.objects.count() == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scopes", ["global", "segment"]),
        ("scopes", []),
        ("scopes", ["nowhere"]),
        ("scopes", ["segment", "segment"]),
        ("scopes", [[]]),
        ("scopes", "segment"),
        ("gate", "never"),
        ("gate", None),
        ("sources", []),
        ("sources", [""]),
        ("sources", [5]),
        ("sources", ["x" * 121]),
        ("sources", ["*"] * 21),
        ("title", ""),
        ("title", "x" * 201),
        ("title", "two\nlines"),
        ("response", None),
        ("trigger", "Not A Slug"),
        ("trigger", "srm"),
        ("trigger", ["srm"]),
        ("budget_per_hour", 0),
        ("budget_per_hour", 1001),
        ("budget_per_hour", True),
        ("budget_per_hour", 2.5),
        ("longest_minutes", 43_201),
        ("longest_minutes", "60"),
    ],
)
def test_row_that_makes_no_sense_is_400_and_named(admin, rows, field, value):
    rows[4][field] = value

    response = put(admin, rows)

    assert response.status_code == 400
    assert set(response.json()["errors"]) == {f"rows.4.{field}"}
    assert TripPolicy.objects.get(trigger="provider-outage").scopes == ["segment", "feature"]


@pytest.mark.parametrize("body", [{}, {"policies": []}, {"policies": "x"}, {"policies": [5]}])
def test_no_table_is_400(admin, body):
    assert admin.send("put", PATH, body).status_code == 400


def test_only_admins_change_it_and_no_token_does(rows):
    token = Api(x_api_key=token_text(person("admin", "owner"), ALL_SCOPES - EXCLUSIVE_SCOPES))
    callers = {role: as_role(role) for role in ("viewer", "operator", "approver")}

    assert {put(api, rows).status_code for api in (token, *callers.values())} == {403}
    assert callers["viewer"].get(PATH).status_code == 200
    assert Api().get(PATH).status_code == 401


def test_dry_run_changes_nothing(admin, rows):
    response = admin.send("put", PATH, {"policies": rows[:2], "dry_run": True})

    assert len(response.json()["results"]) == 2
    assert TripPolicy.objects.count() == 5
