"""Targets, routes and escalations over HTTP."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.escalations import services as escalation
from controlplane.core.http.tests.callers import as_role, with_token
from controlplane.notify.models.targets import Target

from .people import add

pytestmark = pytest.mark.django_db

WEBHOOK = {
    "name": "receiver",
    "kind": "channel",
    "address": "webhook",
    "webhook_url": "https://1.1.1.1/hooks/verysecretpath",
}


def test_matrix_of_the_beginning_is_listed_with_who_is_reached():
    rows = with_token("switches:read").get("/targets/").json()["results"]

    by_name = {row["name"]: row for row in rows}
    assert [step["after_minutes"] for step in by_name["critical"]["steps"]] == [0, 5, 15, 30]
    assert by_name["on-call"]["on_duty"] is None
    assert by_name["cto"]["reaches"] == {"who": "cto", "to": [], "why_not": "not set up"}
    assert by_name["slack"]["reaches"]["to"] == ["Slack"]


def test_admin_makes_changes_tests_and_removes_a_target():
    api = as_role("admin")

    made = api.post("/targets/", {"name": "김 당직", "kind": "person", "email": "k@example.org"})
    path = f"/targets/{made.json()['id']}/"
    changed = api.send("put", path, {"name": "김", "kind": "person", "email": "k@example.org"})
    tested = api.post(f"{path}test")
    removed = api.send("delete", path)

    assert (made.status_code, made.json()["name"]) == (201, "김 당직")
    assert changed.json()["name"] == "김"
    assert tested.json()["to"] == ["e-mail k@example.org"]
    assert removed.json() == {"removed": True}
    assert api.get(path).status_code == 404


def test_webhook_secret_is_in_the_first_answer_only():
    api = as_role("admin")

    dry = api.post("/targets/", {**WEBHOOK, "dry_run": True})
    first = api.post("/targets/", WEBHOOK, Idempotency_Key="k1")
    again = api.post("/targets/", WEBHOOK, Idempotency_Key="k1")
    shown = api.get(f"/targets/{first.json()['id']}/")

    assert dry.json()["webhook_secret"] is None
    assert first.json()["webhook_secret"].startswith("whsec_")
    assert again.json()["webhook_secret"] is None
    assert "webhook_secret" not in shown.json()
    assert shown.json()["webhook_url"] == "https://1.1.1.1/…"


@pytest.mark.parametrize(
    ("caller", "status"),
    [
        (lambda: as_role("viewer"), 403),
        (lambda: as_role("operator"), 403),
        (lambda: as_role("approver"), 403),
        (lambda: with_token("switches:read", "switches:write"), 403),
        (lambda: with_token("slo:read"), 403),
    ],
)
def test_only_admins_in_person_write(caller, status):
    api = caller()
    cto = Target.objects.get(name="cto").pk

    answers = [
        api.post("/targets/", WEBHOOK),
        api.send("put", f"/targets/{cto}/", {"name": "x", "kind": "person"}),
        api.send("delete", f"/targets/{cto}/"),
        api.post(f"/targets/{cto}/test"),
        api.post("/routes/", {"target": "slack", "event": "switch.*"}),
        api.send("delete", "/routes/1/"),
    ]

    assert {answer.status_code for answer in answers} == {status}


def test_steps_rotations_and_their_mistakes_come_back_by_field():
    api = as_role("admin")

    steps = [{"after_minutes": 0, "target": "slack"}, {"after_minutes": 10, "target": "cto"}]
    critical = Target.objects.get(name="critical").pk
    changed = api.send(
        "put",
        f"/targets/{critical}/",
        {"name": "critical", "kind": "escalation", "steps": steps},
    )
    naive = api.post(
        "/targets/",
        {"name": "n", "kind": "on_call", "rotation_starts_at": "2026-11-23T09:00:00"},
    )
    descending = api.post(
        "/targets/",
        {"name": "n", "kind": "escalation", "steps": list(reversed(steps))},
    )

    assert changed.json()["steps"] == steps
    assert set(naive.json()["errors"]) == {"rotation_starts_at"}
    assert set(descending.json()["errors"]) == {"steps"}


def test_routes_are_made_listed_and_removed():
    api = as_role("admin")

    made = api.post("/routes/", {"event": "switch.*", "severity": "critical", "target": "slack"})
    twice = api.post("/routes/", {"event": "switch.*", "severity": "critical", "target": "slack"})
    listed = api.get("/routes/").json()["results"]
    removed = api.send("delete", f"/routes/{made.json()['id']}/")

    assert made.status_code == 201
    assert twice.status_code == 409
    assert [row["event"] for row in listed] == ["*", "switch.*"]
    assert removed.status_code == 200


def test_escalations_are_listed_and_acknowledged_unless_their_app_does_that():
    now = db_now()
    facts = {"path": "/deliveries/"}
    backlog = escalation.open_escalation(
        subject="outbox:backlog", event="outbox.backlog", severity="warning", facts=facts, now=now
    )
    episode = escalation.open_escalation(
        subject="episode:1", event="episode.overdue", severity="critical", facts={}, now=now
    )
    api = as_role("operator")

    listed = api.get("/escalations/").json()["results"]
    known = api.post(f"/escalations/{backlog.pk}/acknowledge", {"comment": "on it"})
    refused = api.post(f"/escalations/{episode.pk}/acknowledge")
    viewer = as_role("viewer").post(f"/escalations/{backlog.pk}/acknowledge")

    assert [row["subject"] for row in listed] == ["episode:1", "outbox:backlog"]
    assert known.json()["acknowledged_by"] == "user:a-operator"
    assert refused.status_code == 409
    assert viewer.status_code == 403
    assert api.post("/escalations/999/acknowledge").status_code == 404


def test_addresses_of_people_are_for_people():
    kim = add("kim", email="kim@example.org", slack_user_id="U024BE7LH")
    add("mail", "channel", address="email:lee@example.org")
    add("direct", "channel", address="slack:D024BE7LH")
    add("ops", "channel", address="slack:#ops")
    program, viewer = with_token("switches:read"), as_role("viewer")

    for path in ("/targets/", f"/targets/{kim.pk}/", "/attention/", "/escalations/"):
        html = program.get(path).content.decode()
        for address in ("kim@", "U024BE7LH", "lee@", "D024BE7LH"):
            assert address not in html
    hidden = {row["name"]: row for row in program.get("/targets/").json()["results"]}
    shown = {row["name"]: row for row in viewer.get("/targets/").json()["results"]}

    assert hidden["kim"]["reaches"]["to"] == ["Slack [hidden]", "e-mail [hidden]"]
    assert (hidden["kim"]["email"], hidden["kim"]["slack_user_id"]) == ("[hidden]", "[hidden]")
    assert (hidden["mail"]["address"], hidden["ops"]["address"]) == ("email:[hidden]", "slack:#ops")
    assert shown["kim"]["reaches"]["to"] == ["Slack U024BE7LH", "e-mail kim@example.org"]
    assert shown["mail"]["address"] == "email:lee@example.org"
    assert viewer.get(f"/targets/{kim.pk}/").json()["email"] == "kim@example.org"


def test_host_inside_is_refused_for_admins_and_not_looked_up_for_others():
    inside = {**WEBHOOK, "webhook_url": "https://localhost/x"}

    admin = as_role("admin")
    refused = admin.post("/targets/", inside)

    assert (refused.status_code, set(refused.json()["errors"])) == (400, {"webhook_url"})
    assert as_role("operator").post("/targets/", inside).status_code == 403
    assert admin.post("/targets/", {"webhook_url": 7}).status_code == 400
