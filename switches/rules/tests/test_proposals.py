"""Proposals of rules over HTTP, and their approval."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import as_role, person, signed_in, with_token
from controlplane.core.outbox.models import OutboxMessage
from switches.models import Episode, Publication, Rule
from switches.rules.tests.factories import create_rule
from switches.tests.bulk_engagements import engage_alike

pytestmark = pytest.mark.django_db
RULE = {"name": "결제는 한 번에 둘까지", "kind": "at_most", "switches": ["segment:*"], "n": 2}
FIELDS = ("name", "kind", "switches", "n")


@pytest.fixture
def admin():
    return as_role("admin")


@pytest.fixture
def approver():
    return as_role("approver")


def delete(api, path, body=None):
    return api.send("delete", path, body)


def approve(api, proposed):
    return api.post(f"/approvals/{proposed.json()['approval']['id']}/approve")


def test_proposed_rule_waits_and_then_is_in_force(admin, approver):
    proposed = admin.post("/rules/", {**RULE, "reason": "both were off on 14 Nov, INC-4411"})

    assert proposed.status_code == 202
    pending = proposed.json()["approval"]
    assert (pending["kind"], pending["state"]) == ("rule_change", "pending")
    assert pending["target"] == f"rule:{RULE['name']}"
    assert pending["diff"]["switches"] == [None, ["segment:*"]]
    assert not Rule.objects.exists()
    assert approve(approver, proposed).status_code == 200
    (rule,) = admin.get("/rules/").json()["results"]
    assert {field: rule[field] for field in FIELDS} == RULE
    assert rule["created_by"] == "user:a-admin"
    (row,) = admin.get("/audit/", {"action": "rule.created"}).json()["results"]
    assert row["actor"]["name"] == "a-approver"
    assert row["after"]["name"] == RULE["name"]


def test_rule_is_changed_and_removed_by_approval(admin, approver):
    row = create_rule("at_most", "segment:*", name="few", n=2)
    changed = {"name": "fewer", "kind": "exclusive", "switches": ["segment:*", "feature:x"]}

    response = admin.send("put", f"/rules/{row.pk}/", changed)
    assert response.json()["approval"]["diff"]["n"] == [2, None]
    assert approve(approver, response).status_code == 200

    after = admin.get(f"/rules/{row.pk}/").json()
    assert (after["name"], after["kind"], after["n"]) == ("fewer", "exclusive", None)
    gone = delete(admin, f"/rules/{row.pk}/")
    assert gone.status_code == 202
    assert approve(approver, gone).status_code == 200
    assert admin.get(f"/rules/{row.pk}/").status_code == 404
    actions = [entry["action"] for entry in admin.get("/audit/").json()["results"]]
    assert "rule.changed" in actions
    assert "rule.removed" in actions


def test_who_asked_does_not_approve(admin):
    assert approve(admin, admin.post("/rules/", RULE)).status_code == 403


def test_owner_of_the_token_that_asked_does_not_approve(approver):
    owner = person("admin", "owner")
    response = with_token("switches:write", owner=owner).post("/rules/", RULE)

    assert response.status_code == 202
    assert approve(signed_in(owner), response).status_code == 403
    assert approve(approver, response).status_code == 200


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_admins_propose(role):
    row = create_rule("exclusive", "segment:*")
    somebody = as_role(role)
    token = with_token("switches:read", owner=person("admin", "owner"))

    for api in (somebody, token):
        assert api.post("/rules/", RULE).status_code == 403
        assert api.send("put", f"/rules/{row.pk}/", RULE).status_code == 403
        assert delete(api, f"/rules/{row.pk}/").status_code == 403
        assert api.get("/rules/").status_code == 200


def test_token_of_an_operator_proposes_nothing():
    token = with_token("switches:write", owner=person("operator", "owner"))

    assert token.post("/rules/", RULE).status_code == 403


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a\u202eb"}, "name"),
        ({"name": "\u200b"}, "name"),
        ({"name": "Two-Person"}, "name"),
        ({"name": "TAKEN"}, "name"),
        ({"kind": "at_best"}, "kind"),
        ({"switches": []}, "switches"),
        ({"switches": ["segment"]}, "switches"),
        ({"switches": ["global:*"]}, "switches"),
        ({"switches": ["segment:a"] * 51}, "switches"),
        ({"switches": "segment:*"}, "switches"),
        ({"n": None}, "n"),
        ({"n": 0}, "n"),
        ({"n": -1}, "n"),
        ({"n": 1001}, "n"),
        ({"n": 10**30}, "n"),
        ({"n": "two"}, "n"),
        ({"kind": "exclusive"}, "n"),
        ({"reason": "fixed \x1b[2J"}, "reason"),
    ],
)
def test_wrong_rule_is_named(admin, fields, field):
    create_rule("exclusive", "segment:*", name="taken")

    proposed = admin.post("/rules/", {**RULE, **fields})

    assert proposed.status_code == 400
    assert field in proposed.json()["errors"]
    assert not Approval.objects.exists()


def test_unknown_rule_is_404(admin):
    assert admin.send("put", "/rules/7/", RULE).status_code == 404
    assert delete(admin, "/rules/7/").status_code == 404
    assert admin.get("/rules/7/").status_code == 404


def test_change_to_what_it_is_already_is_409(admin):
    row = create_rule("at_most", "segment:*", name=RULE["name"], n=2)

    assert admin.send("put", f"/rules/{row.pk}/", RULE).status_code == 409


def test_another_change_of_the_same_rule_has_to_wait(admin):
    row = create_rule("at_most", "segment:*", name="few", n=2)
    admin.send("put", f"/rules/{row.pk}/", {**RULE, "name": "few", "n": 3})
    other = signed_in(person("admin", "other"))

    assert (
        other.send("put", f"/rules/{row.pk}/", {**RULE, "name": "few", "n": 4}).status_code == 409
    )
    assert delete(other, f"/rules/{row.pk}/").status_code == 409


def test_approval_of_a_change_that_no_longer_fits_is_refused_and_leaves_nothing(admin, approver):
    row = create_rule("at_most", "segment:*", name="few", n=2)
    response = admin.send("put", f"/rules/{row.pk}/", {**RULE, "name": "few", "n": 3})
    Rule.objects.update(n=5)
    counts = AuditEntry.objects.count(), OutboxMessage.objects.count()

    refused = approve(approver, response)

    assert refused.status_code == 409
    assert Rule.objects.get().n == 5
    assert (AuditEntry.objects.count(), OutboxMessage.objects.count()) == counts
    waiting = Approval.objects.get()
    assert (waiting.state, waiting.decided_at, waiting.comment) == ("pending", None, "")


def test_two_proposals_of_one_name_make_one_rule(admin, approver):
    row = create_rule("exclusive", "segment:*", name="old")
    first = admin.post("/rules/", {**RULE, "name": "new"})
    second = admin.send("put", f"/rules/{row.pk}/", {**RULE, "name": "new"})
    approve(approver, first)

    assert approve(approver, second).status_code == 400
    assert sorted(Rule.objects.values_list("name", flat=True)) == ["new", "old"]


def test_dry_run_tells_what_it_would_do_and_asks_for_nothing(admin):
    for key in ("a", "b", "c"):
        admin.engage(f"segment:{key}")
    admin.patch("/switches/segment/d/", {"owner": "payments"})

    proposed = admin.post("/rules/", {**RULE, "dry_run": True})

    outlook = proposed.json()["outlook"]
    assert (proposed.status_code, proposed.json()["dry_run"]) == (200, True)
    assert outlook["engaged"] == ["segment:a", "segment:b", "segment:c"]
    assert outlook["violated"] is True
    assert outlook["violation"] == "3 are engaged, 1 more than allowed."
    assert [(one["switch"], one["action"]) for one in outlook["would_refuse"]] == [
        ("segment:d", "engage")
    ]
    assert not Approval.objects.exists()


def test_repeated_proposal_is_one_request(admin):
    first = admin.post("/rules/", RULE, Idempotency_Key="k-1")
    second = admin.post("/rules/", RULE, Idempotency_Key="k-1")

    assert first.json() == second.json()
    assert Approval.objects.count() == 1


def test_rule_that_holds_changes_what_clients_do_at_expiry(admin, approver):
    admin.engage("feature:a", on_expiry="release")
    admin.engage("feature:b", on_expiry="ramp")
    admin.engage("segment:a", on_expiry="release")
    version = Publication.objects.get().version
    proposed = admin.post(
        "/rules/", {"name": "keep", "kind": "protected", "switches": ["feature:*"]}
    )

    approve(approver, proposed)

    policies = dict(Episode.objects.values_list("switch_id", "on_expiry"))
    assert policies == {"feature:a": "hold", "feature:b": "hold", "segment:a": "release"}
    assert Publication.objects.get().version == version + 2
    held = admin.get("/audit/", {"action": "switch.held"}).json()["results"]
    assert sorted(row["target"] for row in held) == ["feature:a", "feature:b"]


def test_list_tells_how_things_stand_in_a_few_queries(admin):
    create_rule("at_most", "segment:*", name="at", n=1)
    create_rule("exclusive", "segment:*", "feature:x", name="broken")
    create_rule("at_least_one", "experiment:*", name="none")
    Episode.objects.all()
    admin.engage("segment:a")
    Rule.objects.filter(name="broken").update(switches=["feature:y"])
    admin.engage("feature:x")
    Rule.objects.filter(name="broken").update(switches=["segment:*", "feature:x"])

    with CaptureQueriesContext(connection) as caught:
        rules = {rule["name"]: rule for rule in admin.get("/rules/").json()["results"]}

    assert len(caught) <= 5
    statuses = {name: (rule["violated"], rule["at_limit"]) for name, rule in rules.items()}
    assert statuses == {"at": (False, True), "broken": (True, False), "none": (True, False)}
    assert rules["broken"]["engaged"] == ["feature:x", "segment:a"]
    assert rules["at"]["sentence"] == "At most 1 of segment:* engaged"


@pytest.mark.parametrize(
    "name",
    ["two-person", "Two\u2011Person", "two person", "ｔｗｏ‐person", "Ownership", "owner-ship"],
)
def test_reserved_name_is_not_to_be_imitated(admin, name):
    proposed = admin.post("/rules/", {**RULE, "name": name})

    assert proposed.status_code == 400
    assert "name" in proposed.json()["errors"]


@pytest.mark.parametrize("number", ["2", 2.0, True])
def test_number_is_one_as_json_has_it(admin, number):
    proposed = admin.post("/rules/", {**RULE, "kind": "at_most", "n": number})

    assert proposed.status_code == 400
    assert proposed.json()["errors"]["n"] == ["Must be a whole number, without quotes."]


def test_engaged_ones_of_a_group_are_counted_and_the_first_are_named(admin):
    create_rule("at_least_one", "segment:*")
    as_role("operator").engage("segment:s00")
    engage_alike(Episode.objects.get(), [f"segment:s{number:02}" for number in range(1, 52)])

    (rule,) = admin.get("/rules/").json()["results"]

    assert (len(rule["engaged"]), rule["engaged_total"]) == (50, 52)
