"""Messages about a request are routed by the scope of its switch and by its risk."""

from datetime import timedelta

import pytest
from django.db import transaction

from controlplane.core.approvals import reviews, services
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person, signed_in
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.escalation import engine
from controlplane.notify.models.targets import Route, Target

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("by_bot")]


@pytest.fixture
def routed():
    """`routed("#ops", scope="global")` creates a route of everything of that kind to a channel."""

    def lead(channel, **narrowed):
        target = Target.objects.create(
            name=channel, kind="channel", address=f"slack:{channel}", created_at=db_now()
        )
        Route.objects.create(event="*", target=target, created_at=db_now(), **narrowed)

    return lead


def list_messages(channel):
    rows = OutboxMessage.objects.filter(destination=f"slack:{channel}").order_by("id")
    return [row.event for row in rows if row.event.startswith(("approval.", "review."))]


def severities(event):
    return set(OutboxMessage.objects.filter(event=event).values_list("severity", flat=True))


def release(switch):
    kim = signed_in(person("operator", "kim"))
    kim.engage(switch)
    path = f"/switches/{switch.replace(':', '/')}/release"
    body = {"justification": "queue empty", "mode": "immediate"}
    return kim.post(path, body).json()["approval"]["id"]


def test_release_of_the_global_switch_is_told_by_its_scope_and_critical_until_decided(routed):
    routed("#global", scope="global")
    routed("#segments", scope="segment")
    routed("#alarm", severity="critical")

    as_role("approver").post(f"/approvals/{release('global:all')}/approve")

    both = ["approval.requested", "approval.decided"]
    assert (list_messages("#global"), list_messages("#alarm"), list_messages("#segments")) == (
        both,
        both,
        [],
    )
    assert severities("approval.requested") == severities("approval.decided") == {"critical"}


def test_release_of_a_segment_is_a_warning_until_decided(routed):
    routed("#alarm", severity="critical")
    routed("#segments", scope="segment", severity="warning")

    as_role("approver").post(f"/approvals/{release('segment:finance')}/deny")

    assert list_messages("#alarm") == []
    assert list_messages("#segments") == ["approval.requested", "approval.decided"]


def test_review_is_told_by_the_scope_of_its_switch_until_signed(routed):
    routed("#global", scope="global")
    now = db_now()
    with transaction.atomic():
        review = reviews.open_review(
            rule="two-person",
            reason="INC-12, nobody else awake",
            target="global:all",
            diff={},
            actor=person("admin", "kim").as_actor(),
            now=now,
        )
    engine.notify_due(now)
    assert list_messages("#global") == ["review.opened"]
    assert not OutboxMessage.objects.filter(event__startswith="escalation.").exists()

    engine.notify_due(now + timedelta(hours=1))
    assert OutboxMessage.objects.filter(
        event="escalation.step", destination="slack:#global"
    ).exists()
    reviews.reopen_due_reviews(now + timedelta(days=7))
    lee = person("approver", "lee").as_actor()
    reviews.sign(review_id=review.pk, comment="", actor=lee, now=now + timedelta(days=8))

    assert list_messages("#global") == ["review.opened", "review.reopened", "review.signed"]
    assert severities("review.signed") == {"critical"}
    assert set(Escalation.objects.values_list("scope", flat=True)) == {"global"}


def test_request_about_a_rule_has_no_scope(routed):
    routed("#global", scope="global")
    services.request_approval(
        kind="rule_change",
        target="rule:payments",
        summary="Change the rule payments",
        diff={},
        reason="one more may be stopped",
        actor=person("admin", "kim").as_actor(),
        now=db_now(),
    )

    assert list_messages("#global") == []
    assert OutboxMessage.objects.filter(event="approval.requested", severity="warning").exists()
