"""External gates over HTTP."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.gates.models import ExternalVerdict
from controlplane.core.http.tests.callers import Api, as_role, person, with_token
from controlplane.core.idempotency.models import IdempotencyKey

pytestmark = pytest.mark.django_db

OK = {"verdict": "ok", "evidence": {"build": 412, "로그": "이상 없음"}}


@pytest.fixture
def ci(db: None) -> Api:
    return with_token("gates:write", "switches:read", "audit:read")


def records(api: Api) -> list[dict[str, Any]]:
    return api.get("/audit/", {"action": "gate.reported"}).json()["results"]


def test_a_report_is_kept_and_shown(ci: Api) -> None:
    before = db_now()

    response = ci.post("/gates/smoke", OK)

    body = response.json()
    assert response.status_code == 200
    assert body["accepted"] is True
    assert (body["name"], body["verdict"], body["by"]) == ("smoke", "ok", "token:ci")
    assert body["evidence"] == OK["evidence"]
    assert timestamp(before) <= body["observed_at"] == body["received_at"]
    shown = {name: value for name, value in body.items() if name != "accepted"}
    assert ci.get("/gates/smoke").json() == shown
    assert ci.get("/gates/").json()["results"] == [shown]


def test_both_forms_of_the_path_work(ci: Api) -> None:
    assert ci.post("/gates/smoke/", OK).status_code == 200
    moved = ci.get("/gates/smoke/")
    assert (moved.status_code, moved["Location"]) == (308, "/api/v1/gates/smoke")
    assert ci.get("/gates").status_code == 308


def test_evidence_may_be_left_out(ci: Api) -> None:
    assert ci.post("/gates/smoke", {"verdict": "fail"}).json()["evidence"] == {}


def test_an_older_observation_is_answered_with_the_one_that_stands(ci: Api) -> None:
    now = db_now()
    ci.post("/gates/smoke", {"verdict": "fail", "observed_at": timestamp(now)})

    late = ci.post("/gates/smoke", {**OK, "observed_at": timestamp(now - timedelta(seconds=1))})

    assert late.status_code == 200
    assert (late.json()["accepted"], late.json()["verdict"]) == (False, "fail")
    assert len(records(ci)) == 1


def test_an_observation_with_another_offset_is_the_same_moment(ci: Api) -> None:
    body = ci.post("/gates/smoke", {**OK, "observed_at": "2020-01-01T09:00:00.5+09:00"}).json()

    assert body["observed_at"] == "2020-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "verdict"),
        ({"verdict": None}, "verdict"),
        ({"verdict": "pass"}, "verdict"),
        ({"verdict": "OK"}, "verdict"),
        ({"verdict": True}, "verdict"),
        ({"verdict": ["ok"]}, "verdict"),
        ({**OK, "evidence": []}, "evidence"),
        ({**OK, "evidence": "log"}, "evidence"),
        ({**OK, "evidence": {"log": "x" * 33_000}}, "evidence"),
        ({**OK, "evidence": {"a": "\x00"}}, "evidence.a"),
        ({**OK, "observed_at": "yesterday"}, "observed_at"),
        ({**OK, "observed_at": "2026-11-21T02:10:00"}, "observed_at"),
        ({**OK, "observed_at": "2026-11-21"}, "observed_at"),
        ({**OK, "observed_at": 1795226400}, "observed_at"),
        ({**OK, "observed_at": "0001-01-01T00:00:00+09:00"}, "observed_at"),
        ({**OK, "observed_at": "9999-12-31T23:59:59Z"}, "observed_at"),
        ({**OK, "observed-at": "2026-11-21T02:10:00Z"}, "observed-at"),
        ({**OK, "dryrun": True}, "dryrun"),
    ],
)
def test_a_wrong_field_is_named(ci: Api, body: dict[str, Any], field: str) -> None:
    response = ci.post("/gates/smoke", body)

    assert response.status_code == 400
    assert list(response.json()["errors"]) == [field]
    assert not ExternalVerdict.objects.exists()


def test_a_clock_somewhat_ahead_is_fine_and_one_far_ahead_is_not(ci: Api) -> None:
    soon, later = (timestamp(db_now() + timedelta(seconds=s)) for s in (50, 90))

    body = ci.post("/gates/smoke", {**OK, "observed_at": soon}).json()

    assert body["observed_at"] == body["received_at"]
    refused = ci.post("/gates/smoke", {**OK, "observed_at": later})
    assert list(refused.json()["errors"]) == ["observed_at"]


@pytest.mark.parametrize("name", ["a%20b", "%EC%A0%95", "x" * 121, "%00"])
def test_a_name_that_is_none_can_neither_be_reported_nor_found(ci: Api, name: str) -> None:
    assert list(ci.post(f"/gates/{name}", OK).json()["errors"]) == ["name"]
    assert ci.get(f"/gates/{name}").status_code == 404


def test_a_gate_nobody_has_reported_is_404(ci: Api) -> None:
    response = ci.get("/gates/smoke")

    assert response.status_code == 404
    assert "smoke" in response.json()["detail"]


def test_only_the_scope_and_an_operators_role_may_report() -> None:
    reader = with_token("switches:read", "switches:write", "ramps:write")
    owner = person("operator", "vi")
    viewers = with_token("gates:write", owner=owner)
    User.objects.filter(pk=owner.pk).update(role="viewer")

    assert reader.post("/gates/smoke", OK).status_code == 403
    assert reader.post("/gates/smoke", OK).json()["scope"] == "gates:write"
    assert viewers.post("/gates/smoke", OK).status_code == 403
    assert as_role("viewer").post("/gates/smoke", OK).status_code == 403
    assert Api().post("/gates/smoke", OK).status_code == 401
    assert not ExternalVerdict.objects.exists()
    assert as_role("operator").post("/gates/smoke", OK).status_code == 200


def test_reading_takes_the_scope_to_read_switches() -> None:
    writer = with_token("gates:write")
    writer.post("/gates/smoke", OK)

    assert writer.get("/gates/smoke").status_code == 403
    assert writer.get("/gates/").status_code == 403
    assert as_role("viewer").get("/gates/smoke").status_code == 200


def test_a_dry_run_answers_and_keeps_nothing(ci: Api) -> None:
    body = ci.post("/gates/smoke", {**OK, "dry_run": True}).json()

    assert (body["dry_run"], body["accepted"], body["verdict"]) == (True, True, "ok")
    assert not ExternalVerdict.objects.exists()
    assert records(ci) == []


def test_a_repeat_under_its_key_gets_the_first_answer_and_does_nothing(ci: Api) -> None:
    first = ci.post("/gates/smoke", OK, idempotency_key="k")
    ci.post("/gates/smoke", {"verdict": "fail"})

    again = ci.post("/gates/smoke", OK, idempotency_key="k")

    assert again.content == first.content
    assert again["Idempotent-Replayed"] == "true"
    assert ci.get("/gates/smoke").json()["verdict"] == "fail"
    assert ci.post("/gates/smoke", {"verdict": "fail"}, idempotency_key="k").status_code == 422
    assert IdempotencyKey.objects.count() == 1


def test_a_change_is_in_the_audit_trail_with_who_and_why(ci: Api) -> None:
    for verdict in ("ok", "ok", "fail"):
        ci.post("/gates/smoke", {"verdict": verdict, "evidence": {"build": 412}})

    newest, oldest = records(ci)
    assert (newest["target"], newest["actor"]["name"]) == ("gate:smoke", "ci")
    assert newest["before"] == {"verdict": "ok"}
    assert newest["after"]["verdict"] == "fail"
    assert newest["after"]["evidence"] == {"build": 412}
    assert oldest["before"] is None


def test_the_list_comes_in_pages_by_name(ci: Api) -> None:
    for name in ("b", "B", "a.1", "z-9", "_"):
        ci.post(f"/gates/{name}", OK)

    first = ci.get("/gates/", {"limit": "3"}).json()
    rest = ci.get(first["next"].partition("testserver")[2]).json()

    names = [one["name"] for one in first["results"] + rest["results"]]
    assert names == ["B", "_", "a.1", "b", "z-9"]
    assert rest["next"] is None


def test_other_methods_are_refused(ci: Api) -> None:
    assert ci.send("delete", "/gates/smoke").status_code == 405
    assert ci.post("/gates/", OK).status_code == 405
