"""The API of drills."""

import pytest
from jsonschema import Draft202012Validator

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, with_token
from controlplane.core.instances.models import Instance
from controlplane.openapi.tests.documents import api_document
from switches.drills.tests.drill_helpers import CANARY, mark, report_present, run_drill
from switches.models import Drill, DrillMark, DrillSchedule, Switch

pytestmark = pytest.mark.django_db
BODY = {"switch": "segment:finance", "reason": "Before the sale weekend"}


@pytest.fixture
def api():
    mark(CANARY, now=db_now())
    return with_token("switches:read", "switches:write")


def test_post_begins_one(api):
    response = api.post("/drills/", BODY)

    assert response.status_code == 202
    drill = response.json()["drill"]
    assert (drill["switch"], drill["mode"], drill["state"]) == (
        "segment:finance",
        "live",
        "running",
    )
    assert (drill["passed"], drill["measured"], drill["finished_at"]) == (None, {}, None)
    assert [step["name"] for step in drill["steps"]] == [
        "look",
        "engage",
        "engaged_applied",
        "release",
        "released_applied",
        "record",
    ]
    assert {step["state"] for step in drill["steps"]} == {"pending"}
    assert drill["reason"] == "Before the sale weekend"
    assert "schedule" not in response.json()


def test_ended_one_tells_what_was_measured(api):
    now = db_now()
    report_present(CANARY, now=now)
    begun = api.post("/drills/", BODY).json()["drill"]
    run_drill(Drill.objects.get(), CANARY, now=now)

    drill = api.get(f"/drills/{begun['id']}/").json()

    assert (drill["state"], drill["passed"], drill["why"]) == ("completed", True, "")
    assert drill["measured"]["engage"]["applied"] == drill["measured"]["engage"]["instances"] == 1
    assert isinstance(drill["measured"]["engage"]["p99_ms"], int)
    assert drill["measured"]["release"]["stragglers"] == []
    assert drill["finished_at"] is not None
    assert api.get("/switches/segment/finance/").json()["last_proven_at"] is not None


def test_every_makes_it_come_round_too(api):
    response = api.post("/drills/", {**BODY, "every": "7d"})

    assert response.json()["schedule"]["every"] == "7d"
    listed = api.get("/drills/schedules/").json()["results"]
    assert [(row["switch"], row["every"]) for row in listed] == [("segment:finance", "7d")]
    removal = api.send("delete", "/drills/schedules/segment/finance/")
    assert removal.status_code == 200
    assert not DrillSchedule.objects.exists()
    assert api.send("delete", "/drills/schedules/segment/finance/").status_code == 404


def test_wrong_round_begins_nothing(api):
    response = api.post("/drills/", {**BODY, "every": "soon"})

    assert response.status_code == 400
    assert "every" in response.json()["errors"]
    assert not Drill.objects.exists()


def test_dry_run_begins_nothing(api):
    response = api.post("/drills/", {**BODY, "dry_run": True})

    assert response.status_code == 200
    assert response.json()["dry_run"] is True
    assert not Drill.objects.exists()
    assert not Switch.objects.exists()


def test_repeat_with_the_same_key_is_the_same_drill(api):
    first = api.post("/drills/", BODY, Idempotency_Key="once")
    again = api.post("/drills/", BODY, Idempotency_Key="once")

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert Drill.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"switch": "global:all", "reason": "all of it"}, 400),
        ({"switch": "segment", "reason": "a reason"}, 400),
        ({"switch": "planet:earth", "reason": "a reason"}, 400),
        ({"switch": "segment:a", "reason": ""}, 400),
        ({"switch": "segment:a"}, 400),
        ({"reason": "a reason"}, 400),
        ({"switch": "segment:a", "reason": "a reason", "mode": "real"}, 400),
        ({"switch": 7, "reason": "a reason"}, 400),
    ],
)
def test_wrong_bodies_are_refused(api, body, status):
    assert api.post("/drills/", body).status_code == status
    assert not Drill.objects.exists()


def test_engaged_switch_and_second_drill_are_conflicts(api):
    assert api.post("/drills/", BODY).status_code == 202
    assert api.post("/drills/", BODY).status_code == 409
    assert api.engage("segment:chat").status_code == 200
    assert api.post("/drills/", {**BODY, "switch": "segment:chat"}).status_code == 409


def test_list_is_newest_first_and_filtered(api):
    api.post("/drills/", BODY)
    api.post("/drills/", {**BODY, "switch": "feature:search", "mode": "dry"})

    def switches(**params):
        return [row["switch"] for row in api.get("/drills/", params).json()["results"]]

    assert switches() == ["feature:search", "segment:finance"]
    assert switches(switch="segment:finance") == ["segment:finance"]
    assert switches(mode="dry") == ["feature:search"]
    page = api.get("/drills/", {"limit": "1"}).json()
    following = page["next"][page["next"].index("/api/") :]
    assert [row["switch"] for row in api.get(following).json()["results"]] == ["segment:finance"]


def test_unknown_drill_is_not_found(api):
    assert api.get("/drills/999/").status_code == 404


@pytest.mark.parametrize("path", ["/drills/", "/drills/instances/", "/drills/schedules/"])
def test_reading_takes_the_scope(path):
    owner = person("admin", "ann")

    assert with_token("switches:read", owner=owner).get(path).status_code == 200
    assert with_token("reports:read", owner=owner).get(path).status_code == 403


def test_beginning_takes_the_scope():
    assert with_token("switches:read").post("/drills/", BODY).status_code == 403
    assert as_role("viewer").post("/drills/", BODY).status_code == 403


class TestMarks:
    def test_approver_marks_and_takes_out(self):
        api = as_role("approver")

        made = api.post("/drills/instances/", {"pattern": "core/*"})
        again = api.post("/drills/instances/", {"pattern": "core/*"})
        removal = api.send("delete", "/drills/instances/", {"pattern": "core/*"})

        assert (made.status_code, again.status_code, removal.status_code) == (201, 200, 200)
        assert made.json()["pattern"] == "core/*"
        assert not DrillMark.objects.exists()

    def test_operator_may_not(self):
        api = as_role("operator")

        assert api.post("/drills/instances/", {"pattern": "core/*"}).status_code == 403
        assert api.send("delete", "/drills/instances/", {"pattern": "a/b"}).status_code == 403

    def test_token_may_as_its_owner_may(self):
        operator = with_token("switches:write", owner=person("operator", "op"))
        approver = with_token("switches:write", owner=person("approver", "ap"))

        assert operator.post("/drills/instances/", {"pattern": "a/b"}).status_code == 403
        assert approver.post("/drills/instances/", {"pattern": "a/b"}).status_code == 201

    def test_wrong_pattern_is_refused(self):
        response = as_role("admin").post("/drills/instances/", {"pattern": "core"})

        assert response.status_code == 400
        assert "pattern" in response.json()["errors"]

    def test_list_counts_who_is_there(self):
        now = db_now()
        mark("core/*", "core/a", "chat/*", now=now)
        for name in ("core/a", "core/b", "mail/a"):
            Instance.objects.create(id=name, service=name.partition("/")[0], heard_at=now)
        Instance.objects.create(id="chat/a", service="chat", heard_at=None)

        rows = with_token("switches:read").get("/drills/instances/").json()["results"]

        assert {row["pattern"]: row["instances"] for row in rows} == {
            "core/*": 2,
            "core/a": 1,
            "chat/*": 0,
        }


def test_real_answers_are_what_the_document_says(api):
    document = api_document()
    now = db_now()
    report_present(CANARY, now=now)
    begun = api.post("/drills/", {**BODY, "every": "7d"})
    dry = api.post("/drills/", {**BODY, "switch": "segment:b", "dry_run": True})
    run_drill(Drill.objects.get(), CANARY, now=now)
    path_of_drill = f"/drills/{begun.json()['drill']['id']}/"
    responses = [
        ("/api/v1/drills/", "post", begun),
        ("/api/v1/drills/", "post", api.post("/drills/", {})),
        ("/api/v1/drills/", "get", api.get("/drills/")),
        ("/api/v1/drills/{drill_id}/", "get", api.get(path_of_drill)),
        ("/api/v1/drills/instances/", "get", api.get("/drills/instances/")),
        ("/api/v1/drills/instances/", "post", api.post("/drills/instances/", {"pattern": "a/b"})),
        ("/api/v1/drills/schedules/", "get", api.get("/drills/schedules/")),
        (
            "/api/v1/drills/schedules/{scope}/{key}/",
            "delete",
            api.send("delete", "/drills/schedules/segment/finance/"),
        ),
    ]

    assert dry.status_code == 200
    for path, method, response in responses:
        described = document["paths"][path][method]["responses"]
        declared = described.get(str(response.status_code)) or described["default"]
        if "$ref" in declared:
            declared = document["components"]["responses"][declared["$ref"].rpartition("/")[2]]
        (content,) = declared["content"].values()
        schema = {**content["schema"], "components": document["components"]}
        errors = [e.message for e in Draft202012Validator(schema).iter_errors(response.json())]
        assert errors == [], (path, method, response.json())
