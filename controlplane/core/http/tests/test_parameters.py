"""Unknown query parameters and fields are refused, with suggestions."""

import pytest

from controlplane.core.errors import InvalidInput
from controlplane.core.http.parameters import MAX_NAME_LENGTH, MAX_NAMED, refuse_unknown
from controlplane.core.http.tests.callers import as_role

pytestmark = pytest.mark.django_db
ENGAGED = {"reason": "card payments charged twice", "expires_in": "1h"}


@pytest.fixture
def admin():
    return as_role("admin")


@pytest.mark.parametrize(
    ("path", "name", "message"),
    [
        ("/switches/?staet=engaged", "staet", "did you mean state?"),
        (
            "/switches/?colour=red",
            "colour",
            "cursor, limit, overdue, q, scope, state, team.",
        ),
        ("/switches/feature/chat/?verbose=1", "verbose", "allowed: none."),
        ("/audit/?actr=kim", "actr", "did you mean actor?"),
        ("/attention/?ofset=3", "ofset", "allowed: cursor, kind, limit, severity, team."),
        ("/dlq/?servr=a", "servr", "did you mean server?"),
        ("/dlq/jobs/?stat=live", "stat", "did you mean state?"),
        ("/openslo/?formt=yaml", "formt", "did you mean format?"),
        ("/snapshot?wiat=5", "wiat", "did you mean wait?"),
    ],
)
def test_unknown_query_parameter_is_refused_with_the_known_ones(admin, path, name, message):
    refused = admin.get(path)

    assert refused.status_code == 400
    assert message in refused.json()["errors"][name][0]


def test_unknown_query_parameter_of_a_change_is_refused_and_changes_nothing(admin):
    refused = admin.post("/switches/feature/chat/engage?dry_run=true", ENGAGED)

    assert refused.status_code == 400
    assert refused.json()["errors"].keys() == {"dry_run"}
    assert admin.get("/switches/feature/chat/").json()["state"] == "released"


@pytest.mark.parametrize(
    "path", ["/switches/?limit=1&cursor=&state=engaged&q=", "/dlq/outbox/?server=default"]
)
def test_known_query_parameters_pass(admin, path):
    assert admin.get(path).status_code == 200


def test_stranger_is_refused_before_parameters_are_read(client):
    assert client.get("/api/v1/switches/?staet=engaged").status_code == 401


def test_unknown_field_is_refused_with_the_known_ones(admin):
    refused = admin.post("/switches/feature/chat/engage", {**ENGAGED, "colour": "red"})

    assert refused.status_code == 400
    assert "allowed: break_glass, dry_run" in refused.json()["errors"]["colour"][0]


def test_field_that_alertmanager_adds_some_day_is_ignored(admin):
    answer = admin.post(
        "/hooks/alertmanager", {"version": "5", "alerts": [], "notificationReason": "x"}
    )

    assert answer.status_code == 200


def test_many_long_unknown_names_make_a_short_answer():
    with pytest.raises(InvalidInput) as refused:
        refuse_unknown([f"{number}" + "x" * 5000 for number in range(500)], ["state"])

    assert len(refused.value.errors) == MAX_NAMED
    assert len(refused.value.detail) < 2000


def test_of_many_unknown_fields_a_few_are_named(admin):
    fields = {f"{number:03}{'x' * 100}": 0 for number in range(500)}

    refused = admin.post("/switches/feature/chat/engage", {**ENGAGED, **fields})

    assert refused.status_code == 400
    named = refused.json()["errors"]
    assert len(named) == MAX_NAMED
    assert max(map(len, named)) <= MAX_NAME_LENGTH
