"""The registry and overrides over HTTP."""

import pytest

from breakers.models import Dependency, Override, Registry
from breakers.tests.registered import BREAKER, REASON, dependency, discovered, instance
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, as_role, person, with_token

pytestmark = pytest.mark.django_db

ONE = "/dependencies/core/oracle/"
POLICY = {
    "protocol": "http",
    "timeout_ms": 60000,
    "routes": [{"pattern": "/event-logs/**", "timeout_ms": 300000}],
    "criticality": "high",
    "mode": "sync",
    "notes": "NL2SQL proxy",
    "breaker": BREAKER,
    "retry": {"attempts": 3, "retry_on": [503, "timeout"], "never": [400]},
    "bulkhead": {"tier": "standard"},
    "fallback": {
        "mode": "cache",
        "code": "ORACLE_UNAVAILABLE",
        "message": "자연어 쿼리를 일시적으로 사용할 수 없습니다",
        "chain": ["cached NL2SQL result", "error"],
        "user_impact": "No NL2SQL",
    },
    "runbook_url": "https://wiki/oracle",
    "owner": "Core",
    "managed_by": "caller",
}
FORCE = {"mode": "forced_open", "reason": REASON, "expires_in": "1h"}


def test_new_dependency_is_created_and_shown_as_it_was_said(admin):
    response = admin.send("put", ONE, POLICY)

    assert response.status_code == 201
    body = response.json()
    assert (body["name"], body["version"], body["registered"]) == ("core->oracle", 1, True)
    assert body["override"] is None
    for field in ("protocol", "timeout_ms", "routes", "criticality", "notes", "owner"):
        assert body[field] == POLICY[field]
    for section in ("breaker", "retry", "fallback"):
        assert {key: body[section][key] for key in POLICY[section]} == POLICY[section]
    assert body["bulkhead"]["limit"] == 3
    assert admin.get(ONE).json() == body


def test_put_of_what_was_got_changes_nothing(admin):
    admin.send("put", ONE, POLICY)
    body = admin.get(ONE).json()

    response = admin.send("put", ONE, body)

    assert response.status_code == 200
    assert response.json() == body


def test_put_says_all_of_it(admin):
    admin.send("put", ONE, POLICY)

    body = admin.send("put", ONE, {"timeout_ms": 5}).json()

    assert (body["timeout_ms"], body["breaker"], body["notes"], body["version"]) == (5, None, "", 2)


def test_post_creates_once(admin):
    first = admin.post("/dependencies/", {"caller": "core", "callee": "oracle", **POLICY})
    second = admin.post("/dependencies/", {"caller": "core", "callee": "oracle", **POLICY})

    assert (first.status_code, second.status_code) == (201, 409)
    assert Registry.objects.get().version == 1


def test_post_registers_what_was_only_reported(admin):
    discovered(db_now())

    response = admin.post("/dependencies/", {"caller": "core", "callee": "oracle"})

    assert response.status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"timeout_ms": "60s"}, "timeout_ms"),
        ({"breaker": {"window_sise": 1}}, "breaker.window_sise"),
        ({"breaker": "on"}, "breaker"),
        ({"time_out_ms": 5}, "time_out_ms"),
        ({"criticality": 5}, "criticality"),
    ],
)
def test_wrong_policy_is_refused_by_field(admin, body, field):
    response = admin.send("put", ONE, body)

    assert response.status_code == 400
    assert list(response.json()["errors"]) == [field]


def test_name_that_is_no_slug_is_refused(admin):
    response = admin.send("put", "/dependencies/Core/oracle/", POLICY)

    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["caller"]


@pytest.mark.parametrize("path", [ONE, "/dependencies/core/%00/", "/dependencies/Core/x/"])
def test_unknown_dependency_is_not_found(admin, path):
    assert admin.get(path).status_code == 404
    assert admin.send("delete", path).status_code == 404
    assert admin.send("put", f"{path}override", FORCE).status_code == 404


def test_reported_dependency_is_shown_with_defaults(admin):
    discovered(db_now())

    body = admin.get(ONE).json()

    assert (body["registered"], body["version"], body["breaker"]) == (False, 0, None)


def test_removed_dependency_is_gone(admin):
    admin.send("put", ONE, POLICY)

    response = admin.send("delete", ONE, {"reason": "oracle is retired"})

    assert response.status_code == 200
    assert response.json()["removed_at"] is not None
    assert admin.get(ONE).status_code == 404
    assert admin.get("/dependencies/").json()["results"] == []


def test_list_comes_in_pages_and_filtered(admin):
    now = db_now()
    for callee in ("oracle", "vision", "weaver"):
        dependency(now, f"core->{callee}")
    dependency(now, "oracle->neo4j", criticality="critical", owner="Oracle")

    page = admin.get("/dependencies/", {"limit": 3}).json()
    rest = admin.client.get(page["next"]).json()
    critical = admin.get("/dependencies/", {"criticality": "critical"}).json()
    body = admin.get("/dependencies/", {"q": "ORAC"}).json()

    assert [row["name"] for row in page["results"] + rest["results"]] == [
        "core->oracle",
        "core->vision",
        "core->weaver",
        "oracle->neo4j",
    ]
    assert [row["name"] for row in critical["results"]] == ["oracle->neo4j"]
    assert [row["name"] for row in body["results"]] == ["core->oracle", "oracle->neo4j"]


def test_list_takes_as_many_queries_for_many(admin, django_assert_max_num_queries):
    now = db_now()
    for number in range(12):
        dependency(now, f"core->s{number}")
        admin.send("put", f"/dependencies/core/s{number}/override", FORCE)

    with django_assert_max_num_queries(8):
        rows = admin.get("/dependencies/").json()["results"]

    assert all(row["override"]["mode"] == "forced_open" for row in rows)


def test_dry_run_tells_and_does_nothing(admin):
    response = admin.send("put", ONE, {**POLICY, "dry_run": True})

    assert response.json()["dry_run"] is True
    assert not Dependency.objects.exists()


def test_repeat_with_its_key_is_answered_again(admin):
    first = admin.send("put", ONE, POLICY, Idempotency_Key="k1")
    again = admin.send("put", ONE, POLICY, Idempotency_Key="k1")
    other = admin.send("put", ONE, {"timeout_ms": 1}, Idempotency_Key="k1")

    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert again["Idempotent-Replayed"] == "true"


def test_override_is_set_with_who_obeys(admin):
    now = db_now()
    dependency(now)
    instance(now, "core/a1", config_version=2)
    instance(now, "core/a2", config_version=1)

    response = admin.send("put", f"{ONE}override", FORCE)

    assert response.status_code == 200
    body = response.json()
    assert (body["mode"], body["reason"], body["version"]) == ("forced_open", REASON, 2)
    assert body["acknowledged"] == {"applied": 1, "instances": 2, "stragglers": ["core/a2"]}
    assert admin.get(ONE).json()["override"]["acknowledged"] == body["acknowledged"]


def test_override_is_taken_away(admin):
    dependency(db_now())
    admin.send("put", f"{ONE}override", FORCE)

    response = admin.send("delete", f"{ONE}override")

    assert response.status_code == 200
    body = response.json()
    assert (body["ended_why"], body["version"]) == ("removed", 3)
    assert admin.get(ONE).json()["override"] is None
    assert admin.send("delete", f"{ONE}override").status_code == 404


def test_own_override_is_undone_and_the_replaced_one_applies_again(admin, operator):
    dependency(db_now())
    operator.send("put", f"{ONE}override", {**FORCE, "mode": "metrics_only"})
    admin.send("put", f"{ONE}override", FORCE)

    refused = operator.send("post", f"{ONE}override/undo")
    rehearsed = admin.send("post", f"{ONE}override/undo", {"dry_run": True})
    undone = admin.send("post", f"{ONE}override/undo")

    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "Only the person who set this override can undo it. Remove it instead.",
    )
    assert rehearsed.json()["override"]["mode"] == "metrics_only"
    assert (undone.status_code, undone.json()["override"]["mode"]) == (200, "metrics_only")
    assert Override.objects.get(ended_at=None).mode == "metrics_only"


def test_undo_without_an_override_is_not_found(admin):
    dependency(db_now())

    assert admin.send("post", f"{ONE}override/undo").status_code == 404


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"mode": "half_open"}, "mode"),
        ({"reason": "because"}, "reason"),
        ({"expires_in": "forever"}, "expires_in"),
        ({"mode": None}, "mode"),
    ],
)
def test_wrong_override_is_refused_by_field(admin, change, field):
    dependency(db_now())

    response = admin.send("put", f"{ONE}override", {**FORCE, **change})

    assert response.status_code == 400
    assert list(response.json()["errors"]) == [field]
    assert not Override.objects.exists()


@pytest.mark.parametrize("method", ["put", "delete"])
@pytest.mark.parametrize("path", [ONE, f"{ONE}override"])
def test_who_may_only_read_changes_nothing(method, path):
    dependency(db_now())

    viewer = as_role("viewer").send(method, path, FORCE)
    token = with_token("breakers:read").send(method, path, FORCE)

    assert (viewer.status_code, token.status_code) == (403, 403)


def test_who_may_not_read_breakers_sees_nothing():
    token = with_token("switches:read")

    for path in ("/dependencies/", ONE, "/breakers/", "/services/", "/channels/"):
        assert token.get(path).status_code == 403
        assert Api().get(path).status_code == 401


def test_token_that_may_write_does(admin):
    token = with_token("breakers:write", "breakers:read", owner=person("admin", "owner"))

    assert token.send("put", ONE, POLICY).status_code == 201
    assert token.send("put", f"{ONE}override", FORCE).json()["set_by"] == "token:ci"


def test_operators_force_and_do_not_register(operator):
    dependency(db_now())
    owned = with_token("breakers:write", owner=person("operator", "owner"))

    for caller in (operator, owned):
        refused = [
            caller.send("put", ONE, POLICY),
            caller.send("delete", ONE),
            caller.post("/dependencies/", {"caller": "core", "callee": "vision"}),
            caller.send("put", "/services/oracle/", {"name": "Oracle"}),
            caller.post("/services/", {"slug": "vision"}),
        ]
        assert {answer.status_code for answer in refused} == {403}
        assert all("can change the registry" in answer.json()["detail"] for answer in refused)
        assert caller.send("put", f"{ONE}override", FORCE).status_code == 200


def test_paths_have_two_forms(admin):
    dependency(db_now())

    assert admin.get("/dependencies/core/oracle").status_code == 308
    assert admin.send("put", f"{ONE}override/", FORCE).status_code == 200


def test_service_is_registered_and_changed(admin):
    first = admin.send("put", "/services/oracle/", {"name": "Oracle", "loses": ["NL2SQL"]})
    second = admin.send("put", "/services/oracle/", {"name": "Oracle", "level": 2})

    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["loses"] == ["NL2SQL"]
    assert (second.json()["level"], second.json()["loses"]) == (2, [])
    assert admin.get("/services/").json()["results"] == [second.json()]


def test_service_is_posted_once(admin):
    first = admin.post("/services/", {"slug": "oracle"})
    second = admin.post("/services/", {"slug": "oracle"})

    assert (first.status_code, second.status_code) == (201, 409)
    assert first.json()["name"] == "oracle"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "thing"}, "kind"),
        ({"level": 0}, "level"),
        ({"level": "2"}, "level"),
        ({"loses": "all"}, "loses"),
        ({"used_by": ["Core"]}, "used_by"),
        ({"probe_url": "file:///etc/passwd"}, "probe_url"),
        ({"probe_url": "tcp://redis"}, "probe_url"),
        ({"probe_url": "https://u:p@x/"}, "probe_url"),
        ({"runbook_url": "wiki"}, "runbook_url"),
        ({"retry": {"max_retries": -1}}, "retry.max_retries"),
    ],
)
def test_wrong_service_is_refused_by_field(admin, body, field):
    response = admin.send("put", "/services/oracle/", body)

    assert response.status_code == 400
    assert list(response.json()["errors"]) == [field]


def test_unknown_service_is_not_found(admin):
    assert admin.get("/services/oracle/").status_code == 404
    assert admin.get("/services/%00/").status_code == 404


def test_body_that_names_another_pair_than_the_address_is_refused(admin):
    response = admin.send("put", ONE, {**POLICY, "callee": "neo4j"})
    same = admin.send("put", ONE, {**POLICY, "caller": "core", "callee": "oracle"})

    assert response.status_code == 400
    assert response.json()["errors"] == {"callee": ["Must equal oracle, the value in the path."]}
    assert same.status_code == 201


def test_listed_row_equals_the_dependency_by_itself(admin):
    admin.send("put", ONE, POLICY)
    admin.send("put", "/dependencies/core/weaver/", {})
    admin.send("put", f"{ONE}override", FORCE)
    discovered(db_now(), "core->canvas")

    listed = admin.get("/dependencies/").json()["results"]

    assert [row["callee"] for row in listed] == ["oracle", "weaver", "canvas"]
    for row in listed:
        assert row == admin.get(f"/dependencies/core/{row['callee']}/").json()
    assert listed[0]["override"]["mode"] == "forced_open"
    assert listed[2]["registered"] is False
