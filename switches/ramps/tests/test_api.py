"""Ramps over HTTP, by the contract."""

from datetime import timedelta

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from controlplane.core.outbox.models import Attempt, OutboxMessage
from switches.models import Publication, Ramp
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    SMOKE,
    engage,
    get_share,
    release,
    run_tick,
    seconds,
    start_ramp,
)
from switches.tests import messages

pytestmark = pytest.mark.django_db
WHY = {"reason": "watching the dashboards first"}
SAFE = {"justification": "5xx below 0.1 % for twenty minutes"}
PLAN = [
    {"percent": 5, "dwell_seconds": 0, "gates": [SMOKE, {"type": "slo", "slo": "availability"}]},
    {"percent": 100, "gates": [{"type": "manual"}]},
]
CONTRACT = {
    *("id", "switch", "episode", "state", "requested_by", "plan", "step_index", "allow_percent"),
    *("steps", "hold_reason", "heartbeat_at", "stuck", "created_at", "finished_at", "outcome"),
}
OF_STEP = {"percent", "state", "started_at", "dwell_until", "gates"}
OF_GATE = {"type", "verdict", "evidence", "checked_at"}


@pytest.fixture
def operator():
    return as_role("operator")


def release_gradually(api, switch=CHAT, plan=PLAN, **more):
    api.engage(switch)
    body = {**SAFE, "plan": plan, **more}
    response = api.post(f"/switches/{switch.replace(':', '/')}/release", body)
    assert response.status_code == 202, response.content
    return response.json()["ramp"]


def test_a_ramp_has_the_shape_of_the_contract(operator):
    ramp = release_gradually(operator)

    assert operator.get(f"/ramps/{ramp['id']}/").json() == ramp
    assert set(ramp) >= CONTRACT
    assert (ramp["switch"], ramp["requested_by"]) == (CHAT, "user:a-operator")
    assert (ramp["justification"], ramp["automatic"]) == (SAFE["justification"], False)
    first, second = ramp["steps"]
    assert set(first) >= OF_STEP
    assert (first["state"], second["state"]) == ("dwelling", "pending")
    assert first["dwell_until"] == first["started_at"]
    for gate in (*first["gates"], *second["gates"]):
        assert set(gate) >= OF_GATE
        assert (gate["evidence"], gate["checked_at"]) == ({}, None)
    assert [gate["verdict"] for gate in first["gates"]] == ["no_data", "no_data"]
    assert first["gates"][1]["min_events"] == 100
    assert second["gates"][0]["verdict"] == "waiting"


def test_what_its_gates_said_is_shown_with_when_it_was_looked_at(operator):
    ramp = release_gradually(operator)
    program = with_token("gates:write")
    program.post("/gates/smoke", {"verdict": "ok", "evidence": {"checks": 12}})

    run_tick(db_now())

    smoke, slo = operator.get(f"/ramps/{ramp['id']}/").json()["steps"][0]["gates"]
    assert (smoke["verdict"], smoke["evidence"]["evidence"]) == ("pass", {"checks": 12})
    assert slo["verdict"] == "no_data"
    assert smoke["checked_at"]


@pytest.mark.parametrize(
    ("verdict", "share", "state"), [("ok", 100, "ramping"), ("fail", 0, "engaged")]
)
def test_an_outsiders_verdict_moves_it(operator, verdict, share, state):
    plan = [{**PLAN[0], "gates": [SMOKE]}, {"percent": 100}]
    ramp = release_gradually(operator, plan=plan)
    run_tick(db_now())
    assert operator.get(f"/ramps/{ramp['id']}/").json()["state"] == "holding"

    with_token("gates:write").post("/gates/smoke", {"verdict": verdict, "evidence": {"errors": 3}})
    run_tick(db_now())

    switch = operator.get("/switches/feature/chat/").json()
    assert (switch["allow_percent"], switch["state"]) == (share, state)
    ramp_after = operator.get(f"/ramps/{ramp['id']}/").json()
    assert ramp_after["steps"][0]["state"] == ("passed" if verdict == "ok" else "failed")
    assert bool(ramp_after["outcome"]) is (verdict == "fail")


def test_side_effects_are_those_of_the_job_and_the_messages(operator, settings):
    messages.configure(settings)
    ramp = release_gradually(operator)
    sent, waiting = ("2026-11-21T03:00:00.000000Z", None)
    message = OutboxMessage.objects.get(event="ramp.started")
    Attempt.objects.create(message=message, number=1, started_at=sent)
    OutboxMessage.objects.filter(pk=message.pk).update(state="sent", finished_at=sent)

    def effects():
        return operator.get(f"/ramps/{ramp['id']}/").json()["effects"]

    published, notice = effects()
    assert published["key"] == f"ramp:{ramp['id']}:0:publish"
    assert published["attempted_at"] == published["done_at"] == ramp["started_at"]
    assert (notice["name"], notice["attempted_at"]) == ("ramp.started", sent)
    assert notice["done_at"] == sent
    OutboxMessage.objects.filter(pk=message.pk).update(state="failed")
    assert effects()[1]["done_at"] is waiting


def test_list_is_newest_first_in_pages(operator):
    now = db_now()
    ids = [start_ramp(now, switch=f"feature:f{number}").pk for number in range(5)]

    first = operator.get("/ramps/", {"limit": "2"}).json()
    second = operator.client.get(first["next"]).json()

    listed = [row["id"] for row in first["results"] + second["results"]]
    assert listed == sorted(ids, reverse=True)[:4]


def test_list_is_narrowed(operator):
    now = db_now()
    going, over = start_ramp(now, switch="feature:a"), start_ramp(now, switch="feature:b")
    operator.post(f"/ramps/{over.pk}/abort", WHY)

    def list_ids(**filters):
        return [row["id"] for row in operator.get("/ramps/", filters).json()["results"]]

    assert list_ids(state="live") == list_ids(state="running") == [going.pk]
    assert list_ids(state="aborted") == list_ids(switch="feature:b") == [over.pk]
    assert list_ids(state="paused") == []
    assert operator.get("/ramps/", {"state": "cancelled"}).status_code == 400


def test_list_takes_as_many_queries_for_many_as_for_one(operator, django_assert_max_num_queries):
    now = db_now()
    for number in range(12):
        start_ramp(now, PLAN, switch=f"feature:f{number}")

    with django_assert_max_num_queries(12):
        assert len(operator.get("/ramps/").json()["results"]) == 12


@pytest.mark.parametrize("ramp_id", ["999999", "9" * 19, "9" * 40])
def test_unknown_ramp_is_404(operator, ramp_id):
    assert operator.get(f"/ramps/{ramp_id}/").status_code == 404
    for verb in ("advance", "pause", "resume", "abort"):
        assert as_admin().post(f"/ramps/{ramp_id}/{verb}", WHY).status_code == 404


def as_admin():
    return signed_in(User.objects.filter(username="root").first() or person("admin", "root"))


@pytest.mark.parametrize(
    ("verb", "state"),
    [("advance", "running"), ("pause", "paused"), ("abort", "aborted")],
)
def test_an_action_answers_the_ramp(verb, state):
    admin = as_role("approver")
    ramp = release_gradually(admin, plan=[{"percent": 5}, {"percent": 100}])

    response = admin.post(f"/ramps/{ramp['id']}/{verb}", WHY)

    assert (response.status_code, response.json()["state"]) == (200, state)
    assert response.json()["id"] == ramp["id"]
    rows = admin.get("/audit/", {"target": CHAT}).json()["results"]
    assert WHY["reason"] in rows[0]["reason"]


def test_resume_follows_pause(operator):
    path = f"/ramps/{release_gradually(operator)['id']}"

    assert operator.post(f"{path}/resume", WHY).status_code == 409
    operator.post(f"{path}/pause", WHY)

    assert operator.post(f"{path}/resume", WHY).json()["state"] == "running"


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": None}, {"reason": 5}])
@pytest.mark.parametrize("verb", ["advance", "pause", "resume", "abort"])
def test_an_action_says_why(verb, body):
    admin = as_role("admin")
    ramp = release_gradually(admin)

    response = admin.post(f"/ramps/{ramp['id']}/{verb}", body)

    assert (response.status_code, list(response.json()["errors"])) == (400, ["reason"])


@pytest.mark.parametrize(
    ("role", "verb", "status"),
    [
        *(("viewer", verb, 403) for verb in ("advance", "pause", "abort")),
        ("operator", "advance", 403),
        *(("operator", verb, 200) for verb in ("pause", "abort")),
        *((role, verb, 200) for role in ("approver", "admin") for verb in ("advance", "abort")),
    ],
)
def test_what_each_role_may(role, verb, status):
    ramp = start_ramp(db_now(), [{"percent": 5}, {"percent": 100}])

    assert as_role(role).post(f"/ramps/{ramp.pk}/{verb}", WHY).status_code == status


@pytest.mark.parametrize(
    ("scopes", "owner", "verb", "status"),
    [
        (["ramps:write"], "admin", "pause", 200),
        (["ramps:write"], "approver", "advance", 200),
        (["ramps:write"], "operator", "advance", 403),
        (["switches:write"], "admin", "abort", 403),
        (["switches:read"], "admin", "pause", 403),
    ],
)
def test_what_each_token_may(scopes, owner, verb, status):
    ramp = start_ramp(db_now(), [{"percent": 5}, {"percent": 100}])
    token = with_token(*scopes, owner=person(owner, "owner"))

    assert token.post(f"/ramps/{ramp.pk}/{verb}", WHY).status_code == status


def test_who_may_look():
    ramp = start_ramp(db_now())

    assert as_role("viewer").get(f"/ramps/{ramp.pk}/").status_code == 200
    assert with_token("switches:read").get("/ramps/").status_code == 200
    assert with_token("gates:write", owner=person("admin", "o")).get("/ramps/").status_code == 403


def test_both_forms_of_a_path(operator):
    path = f"/ramps/{release_gradually(operator)['id']}"

    assert operator.get(path).status_code == operator.get("/ramps").status_code == 308
    assert operator.post(f"{path}/pause/", WHY).status_code == 200


@pytest.mark.parametrize("verb", ["advance", "pause", "abort"])
def test_dry_run_shows_it_and_does_nothing(verb):
    admin = as_role("admin")
    ramp = release_gradually(admin)
    version = Publication.objects.get().version

    response = admin.post(f"/ramps/{ramp['id']}/{verb}", {**WHY, "dry_run": True})

    assert (response.status_code, response.json()["dry_run"]) == (200, True)
    assert admin.get(f"/ramps/{ramp['id']}/").json() == ramp
    assert (Publication.objects.get().version, get_share()) == (version, 5)


def test_dry_run_of_a_release_shows_the_ramp(operator):
    operator.engage(CHAT)

    body = {**SAFE, "plan": PLAN, "dry_run": True}
    after = operator.post("/switches/feature/chat/release", body).json()

    assert (after["state"], after["allow_percent"], after["dry_run"]) == (
        "ramping",
        5,
        True,
    )
    assert (after["ramp"]["id"], len(after["ramp"]["steps"])) == (None, 2)
    assert not Ramp.objects.exists()


def test_idempotency_key_gives_the_first_answer_again(operator):
    operator.engage(CHAT)
    send = {"path": "/switches/feature/chat/release", "body": SAFE, "idempotency_key": "r-1"}

    first, second = operator.post(**send), operator.post(**send)

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json() == second.json()
    pause = {"path": f"/ramps/{first.json()['ramp']['id']}/pause", "idempotency_key": "p-1"}
    assert operator.post(**pause, body=WHY).json() == operator.post(**pause, body=WHY).json()
    assert operator.post(**pause, body={"reason": "another one"}).status_code == 422


def test_of_a_ramp_that_is_over_the_last_share_is_told(operator):
    now = db_now()
    engage("feature:a", now)
    ramp = release("feature:a", now, plan=[{"percent": 100, "dwell_seconds": 5}]).ramp
    run_tick(now + seconds(6))

    resource = operator.get(f"/ramps/{ramp.pk}/").json()

    assert (resource["state"], resource["allow_percent"]) == ("completed", 100)
    assert resource["finished_at"] is not None
    assert operator.get("/switches/feature/a/").json()["ramp"] is None


def test_stuck_is_told(operator):
    now = db_now()
    ramp = start_ramp(now - timedelta(minutes=6))

    assert operator.get(f"/ramps/{ramp.pk}/").json()["stuck"] is True
