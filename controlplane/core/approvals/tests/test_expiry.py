"""Requests nobody decided in time are closed, each by itself."""

from datetime import timedelta

import pytest

from controlplane.core.approvals import services
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.callers import person

pytestmark = pytest.mark.django_db


def create_request(kind, target, now, **more):
    fields = {"summary": f"{kind} {target}", "diff": {}, "reason": "INC-12", "requested_by": "x:y"}
    return Approval.objects.create(
        kind=kind, target=target, requested_at=now, expires_at=now, **{**fields, **more}
    )


def states():
    return list(Approval.objects.order_by("id").values_list("state", flat=True))


def test_kind_that_nobody_registered_is_closed_like_any_other():
    now = db_now()
    create_request("purge", "data:logs", now)
    create_request("rule_change", "rule:a", now)

    assert services.expire_due_requests(now + timedelta(hours=1)) == 2
    assert states() == ["expired", "expired"]


def test_one_that_fails_holds_up_none_of_the_others():
    now = db_now()
    create_request("rule_change", "rule:a", now)
    create_request("rule_change", "rule:b", now, risk="odd")  # No message can be worded about it.
    create_request("rule_change", "rule:c", now)

    assert services.expire_due_requests(now + timedelta(hours=1)) == 2
    assert states() == ["expired", "pending", "expired"]


def test_kind_that_nobody_registered_is_not_approved():
    now = db_now()
    waiting = create_request("purge", "data:logs", now, risk="critical")
    Approval.objects.update(expires_at=now + timedelta(hours=1), kind="of_a_gone_app")
    actor = person("approver", "lee").as_actor()

    with pytest.raises(Conflict, match="of_a_gone_app"):
        services.approve(approval_id=waiting.pk, comment="", actor=actor, now=now)
    assert states() == ["pending"]
    denied = services.deny(approval_id=waiting.pk, comment="no", actor=actor, now=now)
    assert denied.state == "denied"
