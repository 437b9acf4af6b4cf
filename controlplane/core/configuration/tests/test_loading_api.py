"""API of the whole configuration: export, diff, load with a plan, and who may."""

import json
from dataclasses import replace

import pytest

from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import services
from controlplane.core.configuration.readers import LoadOptions
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import Api, as_role, person, token_text
from controlplane.core.roles import ALL_SCOPES
from switches.models import Rule, Switch

from .whole_installation import TEXTS

pytestmark = pytest.mark.django_db

FILES = {"switches.yaml": "switches: {feature:nl2sql: {owner: Oracle}}"}


@pytest.fixture
def ci():
    return token("config:read", "config:write")


def token(*scopes, role="admin"):
    text = token_text(person(role, f"owner-of-{len(scopes)}-{role}"), scopes)
    return Api(authorization=f"Bearer {text}")


def changes(answer):
    return {one["name"]: one["outcome"] for one in answer.json()["changes"]}


def test_diff_shows_the_plan_and_changes_nothing(ci):
    answer = ci.post("/configuration/diff", {"files": FILES})

    assert answer.status_code == 200, answer.content
    assert changes(answer) == {"feature:nl2sql": "new"}
    assert answer.json()["counts"] == {"new": 1, "changed": 0, "same": 0, "kept": 0}
    assert not Switch.objects.exists()


def test_load_is_the_plan_and_is_audited_as_a_whole(ci):
    plan = ci.post("/configuration/diff", {"files": FILES}).json()["plan"]

    answer = ci.post("/configuration/", {"files": FILES, "plan": plan, "reason": "merge of #12"})

    assert answer.status_code == 200, answer.content
    assert answer.json()["plan"] == plan
    assert Switch.objects.get().owner == "Oracle"
    rows = AuditEntry.objects.order_by("-id")[:2]
    assert [row.action for row in rows] == ["configuration.loaded", "registration.changed"]
    summary = json.loads(rows[0].after)
    assert (summary["plan"], summary["new"]) == (plan, 1)
    assert (rows[0].reason, rows[0].actor_type) == ("merge of #12", "token")
    assert audit.verify().intact


def test_load_of_an_outdated_plan_is_refused(ci):
    plan = ci.post("/configuration/diff", {"files": FILES}).json()["plan"]
    as_role("operator").patch("/switches/feature/nl2sql", {"owner": "Kim"})

    answer = ci.post("/configuration/", {"files": FILES, "plan": plan})

    assert answer.status_code == 409
    assert "has changed since this plan was made" in answer.json()["detail"]
    assert Switch.objects.get().owner == "Kim"


def test_dry_run_changes_nothing(ci):
    answer = ci.post("/configuration/", {"files": FILES, "dry_run": True})

    assert changes(answer) == {"feature:nl2sql": "new"}
    assert not Switch.objects.exists()


def test_repeated_request_with_a_key_is_carried_out_once(ci):
    body = {"files": FILES}
    first = ci.post("/configuration/", body, idempotency_key="merge-12")
    second = ci.post("/configuration/", body, idempotency_key="merge-12")

    assert second["Idempotent-Replayed"] == "true"
    assert second.json() == first.json()


def test_token_with_limits_plans_and_does_not_load():
    ada = person("admin", "ada").as_actor()
    limited = replace(ada, type="token", token_id=1, patterns=frozenset({"feature:*"}))
    options = LoadOptions(actor=replace(limited, scopes=ALL_SCOPES), now=db_now(), dry_run=True)

    assert services.load_texts(FILES, options).count("new") == 1
    with pytest.raises(Forbidden, match="limited to feature:"):
        services.load_texts(FILES, replace(options, dry_run=False))
    assert not Switch.objects.exists()


def test_load_by_a_token_does_not_count_as_edited_by_hand(ci):
    ci.post("/configuration/", {"files": FILES})
    again = {"switches.yaml": "switches: {feature:nl2sql: {owner: Vision}}"}

    answer = ci.post("/configuration/", {"files": again, "keep_edited": True})

    assert changes(answer) == {"feature:nl2sql": "changed"}


def test_edit_by_hand_is_kept_on_request(ci):
    ci.post("/configuration/", {"files": FILES})
    as_role("operator").patch("/switches/feature/nl2sql", {"owner": "Kim"})

    answer = ci.post("/configuration/", {"files": FILES, "keep_edited": True})

    (kept,) = answer.json()["changes"]
    assert kept["outcome"] == "kept"
    assert "by user:a-operator" in kept["edited"]
    assert Switch.objects.get().owner == "Kim"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({}, "files"),
        ({"other.yaml": ""}, "other.yaml"),
        ({"switches.yaml": "switches: {a: {}}"}, "switches.yaml: a: scope"),
        ({"switches.yaml": "switches: {feature:a: {own: x}}"}, "switches.yaml: feature:a: own"),
        ({"switches.yaml": "switches: {feature:a: {owner: 5}}"}, "switches.yaml: feature:a: owner"),
        ({"switches.yaml": "switches: ["}, "switches.yaml"),
        ({"switches.yaml": "a: &a [*a]"}, "switches.yaml"),
        ({"rules.yaml": "rules: {x: {kind: at_most, switches: ['*']}}"}, "rules.yaml: x: n"),
        ({"trips.yaml": "policies: [{trigger: a}]"}, "trips.yaml: policies.0: title"),
        (
            {"drills.yaml": "schedules: {global:all: {every: 7d}}"},
            "drills.yaml: global:all: switch",
        ),
        ({"thresholds.yaml": "thresholds: {x: {metric: no}}"}, "thresholds.yaml: x: metric"),
        ({"targets.yaml": "targets: {x: {kind: person, user: no}}"}, "targets.yaml: x: user"),
        ({"targets.yaml": "routes: [{target: no}]"}, "targets.yaml: routes.0: target"),
    ],
)
def test_problem_names_file_and_key(ci, files, place):
    answer = ci.post("/configuration/diff", {"files": files})

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert place in answer.json()["errors"]


def test_wrong_file_leaves_the_others_unloaded(ci):
    answer = ci.post("/configuration/", {"files": {**FILES, "rules.yaml": "rules: [1]"}})

    assert answer.status_code == 400
    assert not Switch.objects.exists()


def test_references_that_expand_without_limit_are_refused(ci):
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in ["ab", "bc", "cd", "de", "ef"]]

    answer = ci.post("/configuration/diff", {"files": {"switches.yaml": "\n".join(lines)}})

    assert answer.status_code == 400
    assert "more than" in str(answer.json()["errors"])


def test_safety_rule_waits_for_a_second_person(ci):
    answer = ci.post("/configuration/", {"files": {"rules.yaml": TEXTS["rules.yaml"]}})

    assert answer.status_code == 200, answer.content
    assert not Rule.objects.exists()
    waiting = {one["approval"] for one in answer.json()["changes"]}
    assert waiting == {one.pk for one in Approval.objects.all()}
    assert Approval.objects.filter(state="pending", kind="rule_change").count() == 2
    ci.post("/configuration/", {"files": {"rules.yaml": TEXTS["rules.yaml"]}})
    assert Approval.objects.count() == 2


def test_session_of_an_admin_may_export_and_load():
    admin = as_role("admin")

    files = admin.get("/configuration/").json()["files"]

    assert len(files) == 14
    assert admin.post("/configuration/", {"files": files}).json()["changes"] == []


def test_session_that_is_not_fresh_must_confirm():
    admin = as_role("admin")
    session = admin.client.session
    session["confirmed_at"] = 0
    session.save()

    answer = admin.post("/configuration/", {"files": FILES})

    assert answer.status_code == 403
    assert answer.json()["type"].endswith("confirm-first")


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_others_may_neither_export_nor_load(role):
    someone = as_role(role)

    assert someone.get("/configuration/").status_code == 403
    assert someone.post("/configuration/diff", {"files": FILES}).status_code == 403
    assert someone.post("/configuration/", {"files": FILES}).status_code == 403


def test_token_without_the_scope_is_refused():
    reader = token("config:read")

    assert reader.get("/configuration/").status_code == 200
    assert reader.get("/configuration/schemas").status_code == 200
    assert reader.post("/configuration/diff", {"files": FILES}).status_code == 200
    assert reader.post("/configuration/", {"files": FILES}).status_code == 403
    assert token("switches:write", "slo:write").get("/configuration/").status_code == 403


def test_dry_run_of_a_load_names_no_request_for_approval(ci):
    answer = ci.post(
        "/configuration/", {"files": {"rules.yaml": TEXTS["rules.yaml"]}, "dry_run": True}
    )

    assert [one["approval"] for one in answer.json()["changes"]] == [None, None]
    assert not Approval.objects.exists()
