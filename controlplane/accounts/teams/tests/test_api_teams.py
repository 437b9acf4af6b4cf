"""The API of teams and rules: changes wait for approval, and decisions say who may."""

import pytest

from controlplane.accounts.models import Team
from controlplane.core.approvals.models import Approval
from controlplane.core.http.tests.callers import person, signed_in, with_token

from .company import REASON, make_team


@pytest.fixture
def ada(db):
    return signed_in(person("admin", "ada"))


@pytest.fixture
def company(ada):
    person("approver", "bob")
    return make_team("company", members={"ada": "lead", "bob": "member"}, owns=["slo:*"])


def test_team_is_requested_once_per_key_and_shown_after_approval(ada):
    bob = person("approver", "bob")
    body = {"slug": "ops", "name": "Ops", "members": {"ada": "lead", "bob": "lead"}}

    made = ada.post("/teams/", {**body, "reason": REASON}, idempotency_key="k")
    again = ada.post("/teams/", {**body, "reason": REASON}, idempotency_key="k")

    assert (made.status_code, made.json()["team"]) == (202, None)
    assert again.json() == made.json()
    approval = made.json()["approval"]["id"]
    assert signed_in(bob).post(f"/approvals/{approval}/approve", {}).status_code == 200
    assert ada.get("/teams/ops/").json()["members"] == [
        {"username": "ada", "role": "lead", "source": "hand"},
        {"username": "bob", "role": "lead", "source": "hand"},
    ]


def test_dry_run_answers_exactly_and_changes_nothing(ada, company):
    response = ada.patch("/teams/company/", {"name": "Firm", "dry_run": True})

    company.refresh_from_db()
    assert (response.status_code, response.json()["team"]["name"]) == (200, "Firm")
    assert company.name == "Company"


def test_change_names_what_waits_and_keeps_what_is_left_out(ada, company):
    body = {"description": "All", "owns": ["segment:*"], "reason": REASON}

    response = ada.patch("/teams/company/", body)

    shown = response.json()
    assert response.status_code == 202
    assert (shown["team"]["description"], shown["team"]["owns"]) == ("All", ["slo:*"])
    assert shown["team"]["pending"] == [shown["approval"]["id"]]
    assert set(shown["approval"]["diff"]) == {"owns"}


def test_other_revision_is_a_conflict(ada, company):
    seen = ada.get("/teams/").json()["results"][0]["revision"]
    assert ada.patch("/teams/company/", {"name": "Firm", "revision": seen}).status_code == 200

    assert ada.patch("/teams/company/", {"name": "Group", "revision": seen}).status_code == 409


def test_deletion_is_requested(ada, company):
    response = ada.send("delete", "/teams/company/", {"reason": REASON})

    assert response.status_code == 202
    assert Team.objects.exists()


def test_tokens_read_and_do_not_write(company):
    token = with_token("switches:read", "switches:write")

    assert token.get("/teams/company/").status_code == 200
    assert token.patch("/teams/company/", {"name": "x"}).status_code == 403


def test_unknown_team_is_not_found(ada):
    assert ada.get("/teams/nowhere/").status_code == 404
    assert ada.patch("/teams/nowhere/", {"name": "x"}).status_code == 404


def test_rules_are_listed_requested_and_restored(ada, company):
    listed = {(one["action"], one["kind"]): one for one in ada.get("/authority/").json()["rules"]}
    assert listed["release", "global"]["relation"] == "root"
    assert listed["release", "all"] == {
        "action": "release",
        "kind": "all",
        "relation": "owner",
        "role": "operator",
        "default": {"relation": "owner", "role": "operator"},
        "changed": False,
    }

    body = {"relation": "anyone", "role": "operator", "reason": REASON}
    response = ada.send("put", "/authority/replay/all/", body)
    same = ada.send("delete", "/authority/replay/stream/", {"reason": REASON})

    assert response.status_code == 202
    assert Approval.objects.get().target == "authority:replay:"
    assert (same.status_code, same.json()) == (200, {"approval": None})


def test_decision_names_owner_and_who_may(ada, company):
    kim = signed_in(person("operator", "kim"))

    response = kim.get("/authority/decision", {"action": "override", "resource": "slo:checkout"})

    assert response.json() == {
        "action": "override",
        "resource": "slo:checkout",
        "owner": "company",
        "allowed": False,
        "detail": "Company owns slo:checkout. Only its members may override it.",
        "can_ask": True,
        "who_may": ["ada", "bob"],
    }
    assert kim.get("/authority/decision", {"action": "fly", "resource": "slo:x"}).status_code == 400
    assert kim.get("/authority/decision", {"action": "edit", "resource": "x"}).status_code == 400
