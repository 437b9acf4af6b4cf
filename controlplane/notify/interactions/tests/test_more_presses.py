"""Slack buttons that sign a review, or acknowledge an escalation other than an episode."""

import pytest
import structlog
from django.db import transaction

from controlplane.accounts.models.people import User
from controlplane.core.approvals import reviews
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.escalations.services import open_escalation

pytestmark = pytest.mark.django_db(transaction=True)


def test_review_is_signed_in_slack_by_somebody_else(in_slack):
    kim, lee = in_slack("approver", "kim"), in_slack("approver", "lee")
    with transaction.atomic():
        review = reviews.open_review(
            rule="two-person",
            reason="INC-12, nobody else awake",
            target="global:all",
            diff={},
            actor=User.objects.get(username="kim").as_actor(),
            now=db_now(),
        )
    value = {"approval": review.pk, "subject": f"review:{review.pk}"}

    assert "second person must sign" in kim.press("sign", value)
    assert lee.press("sign", value).startswith("You signed: Break-glass: global:all")
    assert Approval.objects.get().state == "approved"
    assert lee.press("sign", {"approval": 999}).startswith("There is no review")


@pytest.mark.parametrize("subject", ["a\x00b", "\ud800", "", "x" * 200, 7, None, ["a"], "한국"])
def test_odd_subject_is_told_and_no_error(in_slack, subject):
    with structlog.testing.capture_logs() as logged:
        reply = in_slack("operator", "lee").press("acknowledge", {"subject": subject})

    assert reply == "This button names no subject. Open the console instead."
    assert not [one for one in logged if one["log_level"] == "error"]


def test_switch_that_nobody_engaged_is_acknowledged_by_its_escalation(in_slack):
    escalation = open_escalation(
        subject="trip:5",
        event="trip.suspected",
        severity="critical",
        facts={"switch": "segment:finance"},
        now=db_now(),
    )
    lee = in_slack("operator", "lee")
    value = {"switch": "segment:finance", "subject": "trip:5"}

    assert "24 hours" in lee.press("acknowledge", {**value, "escalation": escalation.pk})
    assert "already acknowledged" in lee.press("acknowledge", value)
    escalation.refresh_from_db()
    assert escalation.acknowledged_by == "slack:lee"
