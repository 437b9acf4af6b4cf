"""Emergency codes that are created and revoked at the same time."""

import pytest

from controlplane.accounts.emergency_codes import services
from controlplane.accounts.models import EmergencyCode, User
from controlplane.accounts.people import services as people
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import at_once, person

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR = system_actor("test")


def create_code(kim):
    try:
        return services.create_code(user=kim, actor=kim.as_actor(), now=db_now())
    except Forbidden:
        return None


def test_codes_created_at_once_leave_one_in_use():
    kim = person("operator", "kim")

    created = at_once(*[lambda: create_code(kim)] * 4)

    assert None not in created
    assert EmergencyCode.objects.count() == 4
    assert EmergencyCode.objects.current().count() == 1
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["emergency_code.created", *["emergency_code.replaced"] * 3]


@pytest.mark.parametrize("change", [{"is_active": False}, {"role": "viewer"}])
def test_code_created_while_the_right_ends_does_not_outlive_it(change):
    for number in range(5):
        kim = person("operator", f"kim-{number}")

        at_once(
            lambda kim=kim: create_code(kim),
            lambda kim=kim: people.change_user(user=kim, actor=ACTOR, now=db_now(), **change),
        )

    assert not EmergencyCode.objects.current().exists()
    assert not User.objects.filter(is_active=True, role="operator").exists()


def test_code_is_revoked_and_replaced_at_once_without_a_deadlock():
    kim = person("operator", "kim")
    create_code(kim)

    at_once(
        *[lambda: create_code(kim)] * 2,
        *[lambda: services.revoke_code(user=kim, actor=ACTOR, now=db_now())] * 2,
        lambda: services.record_use(kim.pk, db_now()),
    )

    assert EmergencyCode.objects.current().count() <= 1
