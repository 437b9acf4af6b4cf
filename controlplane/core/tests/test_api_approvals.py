"""Approvals over HTTP: eligible approvers, a single decision, deadline and effect."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.accounts.models.people import User
from controlplane.core.approvals import services
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import (
    Api,
    as_role,
    at_once,
    person,
    signed_in,
    token_text,
    with_token,
)
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery.tests import conftest as outbox_fixtures
from controlplane.notify.models.targets import Target

slack, by_bot = outbox_fixtures.slack, outbox_fixtures.by_bot
GLOBAL = "/switches/global/all"
RELEASE = {"justification": "duplicate charges refunded, queue empty", "mode": "immediate"}


@pytest.fixture
def operator(db):
    return as_role("operator")


@pytest.fixture
def waiting(operator):
    """The operator's request to release everything."""
    operator.engage("global:all")
    return operator.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]


def state(api):
    return api.get(f"{GLOBAL}/").json()["state"]


def test_request_has_the_shape_of_the_contract_and_nothing_is_released_yet(operator, waiting):
    (row,) = operator.get("/approvals/", {"state": "pending"}).json()["results"]

    assert (row["id"], row["kind"], row["target"]) == (waiting, "release", "global:all")
    assert (row["requested_by"], row["risk"]) == ("user:a-operator", "critical")
    assert (row["decided_by"], row["decided_at"]) == (None, None)
    assert row["reason"] == RELEASE["justification"]
    assert state(operator) == "engaged"


@pytest.mark.parametrize("role", ["approver", "admin"])
def test_second_person_approves_and_it_is_done(operator, waiting, role):
    response = as_role(role).post(f"/approvals/{waiting}/approve", {"comment": "seen it"})

    assert response.status_code == 200
    row = response.json()
    assert (row["state"], row["decided_by"], row["comment"]) == (
        "approved",
        f"user:a-{role}",
        "seen it",
    )
    assert state(operator) == "released"


def test_second_person_denies_and_nothing_happens(operator, waiting):
    response = as_role("approver").post(f"/approvals/{waiting}/deny", {"comment": "not yet"})

    assert response.json()["state"] == "denied"
    assert state(operator) == "engaged"


@pytest.mark.django_db
def test_approver_who_asked_may_not_approve_but_may_withdraw():
    approver = as_role("approver")
    approver.engage("global:all")
    own = approver.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]

    refused = approver.post(f"/approvals/{own}/approve", {})

    assert refused.status_code == 403
    assert "second person" in refused.json()["detail"]
    assert state(approver) == "engaged"
    assert approver.post(f"/approvals/{own}/deny", {}).json()["state"] == "denied"


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_approve_is_refused(waiting, role):
    somebody = signed_in(person(role, "somebody-else"))

    assert somebody.post(f"/approvals/{waiting}/approve", {}).status_code == 403
    assert somebody.post(f"/approvals/{waiting}/deny", {}).status_code == 403


def test_no_token_approves_whoever_owns_it(operator, waiting):
    program = with_token("switches:read", "switches:write")

    for decision in ("approve", "deny"):
        response = program.post(f"/approvals/{waiting}/{decision}", {})
        assert response.status_code == 403
        assert "token" in response.json()["detail"]
    assert state(operator) == "engaged"


@pytest.mark.django_db
def test_owner_of_the_token_that_asked_counts_as_who_asked():
    owner = person("approver")
    program = Api(x_api_key=token_text(owner, ["switches:write"]))
    program.engage("global:all")
    approval_id = program.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]

    assert signed_in(owner).post(f"/approvals/{approval_id}/approve", {}).status_code == 403
    assert as_role("admin").post(f"/approvals/{approval_id}/approve", {}).status_code == 200


def test_decision_is_made_once(waiting):
    approver = as_role("approver")
    approver.post(f"/approvals/{waiting}/deny", {})

    again = approver.post(f"/approvals/{waiting}/approve", {})

    assert again.status_code == 409
    assert again.json()["state"] == "denied"


def test_double_click_changes_nothing_more_and_says_the_same(operator, waiting):
    approver = as_role("approver")
    first = approver.post(f"/approvals/{waiting}/approve", {"comment": "seen it"})

    again = approver.post(f"/approvals/{waiting}/approve", {"comment": "seen it"})

    assert (again.status_code, again.json()) == (200, first.json())
    assert AuditEntry.objects.filter(action="approval.approved").count() == 1
    assert AuditEntry.objects.filter(action="switch.released").count() == 1


def test_somebody_elses_late_decision_is_told_who_was_first(waiting):
    as_role("approver").post(f"/approvals/{waiting}/approve", {})

    for decision in ("approve", "deny"):
        late = signed_in(person("admin", f"late-{decision}")).post(
            f"/approvals/{waiting}/{decision}", {}
        )
        assert late.status_code == 409
        assert "already approved by user:a-approver" in late.json()["detail"]


def test_one_request_is_read_by_its_id(operator, waiting):
    row = operator.get(f"/approvals/{waiting}/").json()

    assert (row["id"], row["replaces"]) == (waiting, None)
    assert operator.get("/approvals/999999/").status_code == 404


def test_list_is_narrowed_to_a_kind(operator, waiting):
    assert operator.get("/approvals/", {"kind": "permanent"}).json()["results"] == []
    assert len(operator.get("/approvals/", {"kind": "release"}).json()["results"]) == 1


def test_critical_request_lapses_after_two_hours(operator, waiting):
    approval = Approval.objects.get()

    assert approval.expires_at - approval.requested_at == timedelta(hours=2)


def test_what_was_decided_is_announced_once(by_bot, operator, waiting):
    approver = as_role("approver")
    for _ in range(2):
        approver.post(f"/approvals/{waiting}/deny", {"comment": "not yet"})

    (outbox_message,) = OutboxMessage.objects.filter(event="approval.decided")
    assert outbox_message.subject == f"approval:{waiting}"
    assert outbox_message.payload["outcome"] == "denied"
    assert outbox_message.payload["decided_by"] == "user:a-approver"


def test_expired_request_is_announced(by_bot, operator, waiting):
    later = timezone.now() + timedelta(hours=3)

    assert (services.expire_due_requests(later), services.expire_due_requests(later)) == (1, 0)

    (outbox_message,) = OutboxMessage.objects.filter(event="approval.decided")
    assert outbox_message.payload["outcome"] == "expired"


def test_who_asked_is_told_themselves_where_a_target_says(by_bot, operator, waiting):
    Target.objects.create(
        name="operator",
        kind="person",
        user=User.objects.get(username="a-operator"),
        slack_user_id="U0OPERATOR",
        created_at=timezone.now(),
    )

    as_role("approver").post(f"/approvals/{waiting}/deny", {})

    outbox_messages = OutboxMessage.objects.filter(event="approval.decided")
    assert {row.destination for row in outbox_messages} == {"slack", "slack:U0OPERATOR"}


def test_request_can_not_be_approved_after_its_time(operator, waiting):
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    response = as_role("approver").post(f"/approvals/{waiting}/approve", {})

    assert response.status_code == 409
    assert state(operator) == "engaged"


def test_repeated_decision_with_its_key_gets_the_first_answer(waiting):
    approver = as_role("approver")
    first = approver.post(f"/approvals/{waiting}/approve", {}, idempotency_key="k")

    again = approver.post(f"/approvals/{waiting}/approve", {}, idempotency_key="k")

    assert again.status_code == 200
    assert again.content == first.content


def test_dry_run_of_an_approval_releases_nothing(operator, waiting):
    response = as_role("approver").post(f"/approvals/{waiting}/approve", {"dry_run": True})

    assert (response.status_code, response.json()["state"]) == (200, "approved")
    assert response.json()["dry_run"] is True
    assert state(operator) == "engaged"
    assert operator.get("/approvals/", {"state": "pending"}).json()["results"]


def test_permanent_is_approved_and_the_switch_stays(operator):
    answer = operator.engage("feature:beta", expires_in="permanent").json()
    assert (answer["permanent"], answer["approval"]["kind"]) == (False, "permanent")

    as_role("approver").post(f"/approvals/{answer['approval']['id']}/approve", {})

    found = operator.get("/switches/feature/beta/").json()
    assert (found["permanent"], found["expires_at"], found["state"]) == (True, None, "engaged")


def test_request_is_void_once_the_switch_was_released(operator):
    approval_id = operator.engage("feature:beta", expires_in="permanent").json()["approval"]["id"]
    as_role("admin").post("/switches/feature/beta/release", RELEASE)

    assert operator.get("/approvals/").json()["results"][0]["state"] == "void"
    assert as_role("approver").post(f"/approvals/{approval_id}/approve", {}).status_code == 409


@pytest.mark.django_db
@pytest.mark.parametrize("approval_id", ["0", "999999", "9" * 19, "9" * 40])
def test_unknown_approval_is_404(approval_id):
    approver = as_role("approver")

    for decision in ("approve", "deny"):
        response = approver.post(f"/approvals/{approval_id}/{decision}", {})
        assert response.status_code == 404
        assert response["Content-Type"] == "application/problem+json"


@pytest.mark.django_db
@pytest.mark.parametrize("approval_id", ["abc", "-1", "1.5", "%00"])
def test_impossible_approval_is_404(approval_id):
    assert as_role("approver").post(f"/approvals/{approval_id}/approve", {}).status_code == 404


def test_unknown_state_is_named(operator):
    response = operator.get("/approvals/", {"state": "maybe"})

    assert response.status_code == 400
    assert "state" in response.json()["errors"]


@pytest.mark.parametrize("comment", [5, "nul\x00", "x" * 2001, ["a"]])
def test_wrong_comment_is_named(waiting, comment):
    response = as_role("approver").post(f"/approvals/{waiting}/approve", {"comment": comment})

    assert response.status_code == 400
    assert "comment" in response.json()["errors"]


@pytest.mark.django_db(transaction=True)
def test_of_two_decisions_at_once_one_wins():
    operator = as_role("operator")
    operator.engage("global:all")
    approval_id = operator.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]
    yes, no = as_role("approver"), as_role("admin")

    answers = at_once(
        lambda: yes.post(f"/approvals/{approval_id}/approve", {}),
        lambda: no.post(f"/approvals/{approval_id}/deny", {}),
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    approved = answers[0].status_code == 200
    assert state(operator) == ("released" if approved else "engaged")
