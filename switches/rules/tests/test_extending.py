"""Extending an episode against a rule: limited and announced while the rule refuses it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role
from controlplane.core.outbox.models import OutboxMessage
from switches.models import Episode
from switches.rules.tests.factories import WHY, break_glass_naming, create_rule

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def operator(settings):
    """Return a person who engaged `segment:b` against a rule an hour ago."""
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")
    create_rule("exclusive", "segment:*", name="one at a time")
    api = as_role("operator")
    api.engage("segment:a")
    api.engage("segment:b", break_glass=break_glass_naming("one at a time"))
    broken().update(engaged_at=db_now() - HOUR, expires_at=db_now() + 3 * HOUR)
    return api


def broken():
    return Episode.objects.filter(switch_id="segment:b")


def extend(api, expires_in="30d"):
    return api.post("/switches/segment/b/extend", {"expires_in": expires_in, "reason": WHY})


def list_messages():
    return list(OutboxMessage.objects.filter(event="switch.broke_glass").order_by("id"))


def test_extension_is_a_few_hours_at_most_and_says_so(operator):
    response = extend(operator)

    left = broken().get().expires_at - db_now()
    assert response.status_code == 200
    assert 4 * HOUR - timedelta(minutes=1) < left <= 4 * HOUR
    assert "“one at a time”" in response.json()["notice"]
    assert broken().get().on_expiry == "hold"


def test_each_extension_is_as_loud_as_the_beginning(operator):
    extend(operator)

    began, extended = list_messages()
    assert (began.payload["did"], extended.payload["did"]) == ("engage", "extend")
    assert (extended.severity, extended.payload["rule"]) == ("critical", "one at a time")
    assert extended.subject == began.subject


def test_each_extension_leaves_a_review_of_its_own(operator):
    extend(operator)

    reviews = Approval.objects.filter(kind="break_glass_review", state="pending")
    assert [review.diff["did"] for review in reviews.order_by("id")] == ["engage", "extend"]


def test_shorter_wish_is_granted_as_it_is(operator):
    response = extend(operator, "200m")

    assert response.status_code == 200
    assert "notice" not in response.json()
    assert len(list_messages()) == 2


def test_extension_that_adds_nothing_is_refused(operator):
    extend(operator)
    ends_at = broken().get().expires_at
    broken().update(expires_at=ends_at + timedelta(minutes=5))

    response = extend(operator)

    assert response.status_code == 400
    assert "already lasts that long" in response.json()["errors"]["expires_in"][0]


def test_permanent_is_refused(operator):
    response = extend(operator, "permanent")

    assert response.status_code == 409
    assert "not permanently" in response.json()["detail"]
    assert not Approval.objects.filter(kind="permanent").exists()


def test_what_no_rule_refuses_any_more_is_ordinary(operator):
    assert operator.post("/switches/segment/a/undo").status_code == 200

    response = extend(operator)

    assert "notice" not in response.json()
    assert broken().get().expires_at - db_now() > timedelta(days=29)
    assert len(list_messages()) == 1


def test_permanent_asked_for_before_the_rule_refuses_again_is_not_carried_out(operator):
    assert operator.post("/switches/segment/a/undo").status_code == 200
    approval = extend(operator, "permanent").json()["approval"]
    operator.engage("segment:c", break_glass=break_glass_naming("one at a time"))

    response = as_role("approver").post(f"/approvals/{approval['id']}/approve")

    assert response.status_code == 409
    assert not broken().get().permanent
    assert not AuditEntry.objects.filter(action="switch.extended").exists()
