"""An approver who loses the role while waiting for a lock approves nothing."""

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.approvals import services
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import person, signed_in

pytestmark = pytest.mark.django_db
RELEASE = {"justification": "duplicate charges refunded, queue empty", "mode": "immediate"}


@pytest.mark.parametrize("change", [{"role": "operator"}, {"is_active": False}])
def test_who_was_changed_since_the_request_began_approves_nothing(change):
    kim, ada = signed_in(person("operator", "kim")), person("approver", "ada")
    kim.engage("global:all")
    approval_id = kim.post("/switches/global/all/release", RELEASE).json()["approval"]["id"]
    actor = ada.as_actor()
    User.objects.filter(pk=ada.pk).update(**change)

    with pytest.raises(Forbidden, match="no longer allows this"):
        services.approve(approval_id=approval_id, comment="seen", actor=actor, now=db_now())

    assert Approval.objects.get(pk=approval_id).state == "pending"
