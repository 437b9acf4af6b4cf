"""The API of actions on one switch, by the lines of its contract."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.core.http.tests.callers import as_role, with_token
from switches.models import Publication

FINANCE = "/switches/segment/finance"
RELEASE = {"justification": "duplicate charges refunded, queue empty"}
LATER = {"expires_in": "2d", "reason": "refund job is still running"}
RESOURCE = {
    *("id", "scope", "key", "state", "allow_percent", "reason", "engaged_by", "engaged_at"),
    *("expires_at", "on_expiry", "permanent", "overdue", "version", "owner", "description"),
    *("runbook_url", "last_proven_at", "ramp", "effect"),
}
pytestmark = pytest.mark.django_db


def moment(text):
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def actions(api):
    return [row["action"] for row in api.get("/audit/").json()["results"]]


def test_engage_answers_the_resource(operator):
    response = operator.engage("segment:finance", evidence={"alert": 5})

    switch = response.json()
    assert response.status_code == 200
    assert set(switch) == RESOURCE
    assert (switch["id"], switch["scope"], switch["key"]) == (
        "segment:finance",
        "segment",
        "finance",
    )
    assert (switch["state"], switch["allow_percent"]) == ("engaged", 0)
    assert switch["reason"] == "card payments charged twice"
    assert switch["engaged_by"] == "a-operator"
    assert moment(switch["expires_at"]) - moment(switch["engaged_at"]) == timedelta(hours=24)
    assert (switch["permanent"], switch["overdue"]) == (False, False)
    assert switch["version"] == Publication.objects.get().version
    assert switch["effect"]["version"] == switch["version"]
    assert operator.get(f"{FINANCE}/").json() == switch


@pytest.mark.parametrize(
    ("switch", "policy"),
    [
        ("global:all", "hold"),
        ("segment:a", "hold"),
        ("feature:a", "ramp"),
        ("experiment:a", "ramp"),
    ],
)
def test_policy_at_expiry_follows_the_scope(operator, switch, policy):
    assert operator.engage(switch).json()["on_expiry"] == policy


def test_expiry_can_be_a_time_with_any_offset(operator):
    ends = (timezone.now() + timedelta(hours=3)).replace(microsecond=0)
    local = ends.astimezone(tz=datetime.strptime("+0900", "%z").tzinfo)

    switch = operator.engage("segment:a", expires_in=None, expires_at=local.isoformat()).json()

    assert moment(switch["expires_at"]) == ends


@pytest.mark.parametrize("field", ["expires_in", "expires_at"])
def test_permanent_engages_for_a_day_and_asks_for_approval(operator, field):
    fields = {"expires_in": None, "expires_at": None, field: "permanent"}

    switch = operator.engage("segment:finance", **fields).json()

    assert (switch["state"], switch["permanent"]) == ("engaged", False)
    assert moment(switch["expires_at"]) - moment(switch["engaged_at"]) == timedelta(hours=24)
    assert (switch["approval"]["kind"], switch["approval"]["state"]) == ("permanent", "pending")


@pytest.mark.parametrize("policy", ["release", "ramp"])
def test_global_switch_is_never_released_by_time(operator, policy):
    response = operator.engage("global:all", on_expiry=policy)

    assert response.status_code == 400
    assert "on_expiry" in response.json()["errors"]


def test_engaging_an_engaged_switch_is_409_with_its_episode(operator):
    operator.engage("segment:finance")

    response = as_role("admin").engage("segment:finance", reason="checkout latency above 10 s")

    assert response.status_code == 409
    episode = response.json()["episode"]
    assert episode["reason"] == "card payments charged twice"
    assert episode["engaged_by"] == "user:a-operator"
    assert "card payments charged twice" in response.json()["detail"]
    assert operator.get(f"{FINANCE}/").json()["reason"] == "card payments charged twice"


def test_engaging_a_key_that_nobody_registered_registers_it(operator):
    operator.engage("experiment:never.heard-of_it")

    (listed,) = operator.get("/switches/").json()["results"]
    assert listed["id"] == "experiment:never.heard-of_it"


def test_break_glass_is_accepted_though_no_rule_stands_in_the_way(operator):
    glass = {"rule": "two-person", "reason": "payments are on fire"}

    assert operator.engage("segment:finance", break_glass=glass).status_code == 200


def test_extend_moves_the_expiry(operator):
    before = operator.engage("segment:finance").json()

    after = operator.post(f"{FINANCE}/extend", LATER)

    assert after.status_code == 200
    assert moment(after.json()["expires_at"]) > moment(before["expires_at"])
    assert after.json()["version"] == before["version"] + 1


def test_extend_to_permanent_asks_for_approval(operator):
    before = operator.engage("segment:finance").json()

    after = operator.post(f"{FINANCE}/extend", {**LATER, "expires_in": "permanent"}).json()

    assert (after["expires_at"], after["permanent"]) == (before["expires_at"], False)
    assert after["approval"]["kind"] == "permanent"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"expires_in": "1h"}, "expires_in"),
        ({"expires_in": "31d"}, "expires_in"),
        ({"expires_in": "soon"}, "expires_in"),
        ({"expires_in": None}, "expires_in"),
        ({"expires_in": 5}, "expires_in"),
        ({"reason": "longer"}, "reason"),
        ({"reason": None}, "reason"),
    ],
)
def test_wrong_extension_is_named(operator, fields, field):
    operator.engage("segment:finance")

    response = operator.post(f"{FINANCE}/extend", {**LATER, **fields})

    assert response.status_code == 400
    assert field in response.json()["errors"]


@pytest.mark.parametrize(
    ("action", "body"), [("extend", LATER), ("acknowledge", {}), ("release", RELEASE), ("undo", {})]
)
def test_what_needs_an_engaged_switch_is_409_on_a_released_one(operator, action, body):
    operator.patch("/switches/segment/known/", {"owner": "payments"})

    for key in ("known", "never-heard-of"):
        response = operator.post(f"/switches/segment/{key}/{action}", body)
        assert response.status_code == 409
        assert response.json()["type"] == "urn:switchgear:problem:conflict"


def test_acknowledge_changes_nothing_that_is_published(operator):
    before = operator.engage("segment:finance").json()

    after = operator.post(f"{FINANCE}/acknowledge", {"comment": "I know, on it"})

    (episode,) = operator.get(f"{FINANCE}/history").json()["results"]
    known = {name: episode[name] for name in ("acknowledged_at", "acknowledged_by")}
    assert (after.status_code, after.json()) == (200, {**before, **known})
    assert known["acknowledged_by"] == "user:a-operator"


def test_describe_keeps_the_fields_it_was_not_given(operator):
    operator.patch(f"{FINANCE}/", {"owner": "payments", "description": "stops card charges"})

    switch = operator.patch(f"{FINANCE}/", {"runbook_url": "https://wiki/finance"}).json()

    assert switch["owner"] == "payments"
    assert switch["description"] == "stops card charges"
    assert switch["runbook_url"] == "https://wiki/finance"
    assert (switch["state"], switch["version"]) == ("released", 0)


def test_action_works_with_a_slash_at_its_end_too(operator):
    body = {"reason": "card payments charged twice", "expires_in": "1h"}

    assert operator.post(f"{FINANCE}/engage/", body).status_code == 200
    assert operator.patch(FINANCE, {"owner": "payments"}).json()["owner"] == "payments"
    assert operator.post(f"{FINANCE}/undo/").status_code == 200


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/switches?state=engaged&q=a%20b", "/switches/?state=engaged&q=a%20b"),
        ("/switches/segment/finance", "/switches/segment/finance/"),
        ("/switches/segment/finance/history/", "/switches/segment/finance/history"),
        ("/snapshot/", "/snapshot"),
        ("/audit", "/audit/"),
        ("/audit/export/?format=csv", "/audit/export?format=csv"),
    ],
)
def test_other_form_of_a_path_redirects_a_get(operator, path, own):
    response = operator.client.get(f"/api/v1{path}")

    assert response.status_code == 308
    assert response["Location"] == f"/api/v1{own}"


def test_version_is_one_step_for_each_published_change():
    program = with_token("switches:write", "audit:read")
    at_once = {**RELEASE, "mode": "immediate"}

    versions = [
        program.engage("feature:a").json()["version"],
        program.engage("segment:b").json()["version"],
        program.post("/switches/feature/a/extend", LATER).json()["version"],
        program.post("/switches/feature/a/release", at_once).json()["version"],
        program.post("/switches/segment/b/undo").json()["version"],
    ]

    first = versions[0]
    assert versions == list(range(first, first + 5))
    changes = [action for action in actions(program) if action.startswith("switch.")]
    assert len(changes) == 5
