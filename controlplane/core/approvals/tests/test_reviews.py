"""Break-glass reviews: signed by somebody else, never denied, opened anew every week."""

from datetime import timedelta

import pytest
from django.db import transaction

from controlplane.core.actors import system_actor
from controlplane.core.approvals import attention, reviews, services
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.escalations import services as escalations
from controlplane.core.http.tests.callers import Api, as_role, person, signed_in, token_text
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage

pytestmark = pytest.mark.django_db

WEEK = timedelta(days=7)


@pytest.fixture
def kim():
    return person("admin", "kim")


def broken_by(actor, now=None, target="segment:finance"):
    with transaction.atomic():
        return reviews.open_review(
            rule="payments: at most 1",
            reason="both providers charge twice, INC-12",
            target=target,
            diff={"episode": 7},
            actor=actor,
            now=now or db_now(),
        )


@pytest.fixture
def review(kim):
    return broken_by(kim.as_actor())


def test_review_is_critical_loud_and_never_runs_out(by_bot, kim):
    review = broken_by(kim.as_actor())

    assert (review.kind, review.risk, review.expires_at) == ("break_glass_review", "critical", None)
    outbox_message = OutboxMessage.objects.get(event="review.opened")
    assert (outbox_message.severity, outbox_message.subject) == ("critical", f"review:{review.pk}")
    assert outbox_message.payload["rule"] == "payments: at most 1"
    escalation = Escalation.objects.get()
    assert (escalation.subject, escalation.severity) == (f"review:{review.pk}", "warning")
    assert AuditEntry.objects.get(action="review.opened").target == "segment:finance"
    assert services.expire_due_requests(db_now() + timedelta(days=400)) == 0


def test_somebody_else_signs_and_the_escalation_is_over(review):
    response = as_role("approver").post(f"/reviews/{review.pk}/sign", {"comment": "INC-12 read"})

    assert response.status_code == 200
    row = response.json()
    assert (row["state"], row["decided_by"], row["comment"]) == (
        "approved",
        "user:a-approver",
        "INC-12 read",
    )
    assert Escalation.objects.get().closed_at is not None
    assert AuditEntry.objects.get(action="review.signed").reason == "INC-12 read"


def test_signing_again_is_one_effect_and_a_later_one_is_told_who_was_first(review):
    first = as_role("approver")
    first.post(f"/reviews/{review.pk}/sign", {})

    assert first.post(f"/reviews/{review.pk}/sign", {}).status_code == 200
    late = as_role("admin").post(f"/reviews/{review.pk}/sign", {})

    assert late.status_code == 409
    assert "user:a-approver" in late.json()["detail"]
    assert AuditEntry.objects.filter(action="review.signed").count() == 1


def test_who_broke_the_glass_does_not_sign(kim, review):
    for path in (f"/reviews/{review.pk}/sign", f"/approvals/{review.pk}/approve"):
        refused = signed_in(kim).post(path, {})
        assert refused.status_code == 403
        assert "second person" in refused.json()["detail"]


def test_owner_of_the_token_that_broke_the_glass_does_not_sign(kim):
    token = Api(x_api_key=token_text(kim, ["switches:write"]))
    review = broken_by(kim.as_actor())

    assert token.post(f"/reviews/{review.pk}/sign", {}).status_code == 403
    assert signed_in(kim).post(f"/reviews/{review.pk}/sign", {}).status_code == 403


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_approve_does_not_sign(review, role):
    assert as_role(role).post(f"/reviews/{review.pk}/sign", {}).status_code == 403


def test_what_the_servers_shell_broke_anybody_signs_who_approves():
    review = broken_by(system_actor("shell"))

    assert as_role("approver").post(f"/reviews/{review.pk}/sign", {}).status_code == 200


def test_review_is_never_denied_nor_withdrawn_nor_edited(kim, review):
    owner, other = signed_in(kim), as_role("approver")

    assert other.post(f"/approvals/{review.pk}/deny", {}).status_code == 409
    assert owner.post(f"/approvals/{review.pk}/deny", {}).status_code == 409
    assert owner.patch(f"/approvals/{review.pk}/", {"reason": "never mind"}).status_code == 409
    assert Approval.objects.get().state == "pending"


def test_a_request_is_no_review():
    operator = as_role("operator")
    approval_id = operator.engage("feature:beta", expires_in="permanent").json()["approval"]["id"]
    approver = as_role("approver")

    assert approver.post(f"/reviews/{approval_id}/sign", {}).status_code == 404
    assert approver.post("/reviews/999999/sign", {}).status_code == 404
    assert Approval.objects.get().state == "pending"


def test_glass_broken_twice_has_two_reviews(kim, review):
    second = broken_by(kim.as_actor())

    assert {review.target, second.target} == {"segment:finance", "segment:finance#2"}
    as_role("approver").post(f"/reviews/{review.pk}/sign", {})
    assert Escalation.objects.get(subject=f"review:{second.pk}").closed_at is None
    assert broken_by(kim.as_actor()).target == "segment:finance"


def test_unsigned_review_is_opened_anew_every_week(by_bot, kim):
    now = db_now()
    review = broken_by(kim.as_actor(), now)
    subject = f"review:{review.pk}"
    escalations.acknowledge(subject=subject, actor=kim.as_actor(), now=now)

    assert reviews.reopen_due_reviews(now + WEEK - timedelta(seconds=1)) == 0
    assert reviews.reopen_due_reviews(now + WEEK) == 1
    assert reviews.reopen_due_reviews(now + WEEK + timedelta(minutes=5)) == 0

    open_one = Escalation.objects.get(subject=subject, closed_at=None)
    assert open_one.acknowledged_at is None
    outbox_message = OutboxMessage.objects.get(event="review.reopened")
    assert outbox_message.severity == "critical"
    assert outbox_message.payload["said"] == "Unsigned for 1 week."
    assert AuditEntry.objects.filter(action="review.reopened").count() == 1


def test_acknowledgement_after_the_week_began_is_kept(kim):
    now = db_now()
    review = broken_by(kim.as_actor(), now)
    reviews.reopen_due_reviews(now + WEEK)
    escalations.acknowledge(subject=f"review:{review.pk}", actor=kim.as_actor(), now=now + WEEK)

    assert reviews.reopen_due_reviews(now + WEEK + timedelta(days=6)) == 0
    assert Escalation.objects.get(closed_at=None).acknowledged_at is not None


def test_weeks_that_went_by_unseen_are_told_once(by_bot, kim):
    now = db_now()
    broken_by(kim.as_actor(), now)

    assert reviews.reopen_due_reviews(now + 5 * WEEK + timedelta(days=3)) == 1
    assert reviews.reopen_due_reviews(now + 5 * WEEK + timedelta(days=3)) == 0
    assert reviews.reopen_due_reviews(now + 6 * WEEK) == 1

    outbox_messages = OutboxMessage.objects.filter(event="review.reopened").order_by("id")
    assert [one.payload["weeks"] for one in outbox_messages] == [5, 6]


def test_signed_review_is_left_alone(review):
    as_role("approver").post(f"/reviews/{review.pk}/sign", {})

    assert reviews.reopen_due_reviews(db_now() + 3 * WEEK) == 0


def test_review_and_request_wait_for_attention(kim, review):
    operator = as_role("operator")
    operator.engage("feature:beta", expires_in="permanent")
    now = db_now()

    (unsigned,) = attention.list_unsigned_reviews(now)
    (item,) = attention.list_pending_requests(now)

    assert (unsigned.severity, unsigned.path) == ("warning", review.page_url)
    assert (item.severity, item.due_at > now) == ("warning", True)
    (old,) = attention.list_unsigned_reviews(now + WEEK)
    assert old.severity == "critical"
    assert attention.list_pending_requests(now + timedelta(days=2)) == []
