"""Emergency codes of people: created by themselves, revoked with what allowed them."""

from datetime import timedelta

import pytest

from controlplane.accounts.emergency_codes import codes, services
from controlplane.accounts.models import BrowserSession, EmergencyCode, User
from controlplane.accounts.people import deactivation
from controlplane.accounts.people import services as people
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.roles import SCOPES_OF, Role

pytestmark = pytest.mark.django_db
WORLD = system_actor("test")


def create_code(user):
    return services.create_code(user=user, actor=user.as_actor(), now=db_now())


def list_entries():
    return list(AuditEntry.objects.order_by("id").values_list("action", "target"))


@pytest.mark.parametrize("role", ["operator", "approver", "admin"])
def test_created_code_is_correct_and_only_its_hash_is_stored(role):
    kim = person(role, "kim")

    code = create_code(kim)

    row = EmergencyCode.objects.get()
    assert codes.is_correct(code, bytes.fromhex(row.salt), bytes.fromhex(row.digest))
    assert code not in str(EmergencyCode.objects.values())
    assert list_entries() == [("emergency_code.created", "user:kim")]
    assert services.get_current(kim) == row


def test_replacing_revokes_the_old_code_at_the_time_of_the_new_one():
    kim = person("operator", "kim")
    create_code(kim)

    code = create_code(kim)

    old, new = EmergencyCode.objects.order_by("id")
    assert old.revoked_at == new.created_at
    assert new.revoked_at is None
    assert not codes.is_correct(code, bytes.fromhex(old.salt), bytes.fromhex(old.digest))
    assert list_entries()[1:] == [("emergency_code.replaced", "user:kim")]


def test_viewer_gets_no_code():
    with pytest.raises(Forbidden, match="operator"):
        create_code(person("viewer"))

    assert not EmergencyCode.objects.exists()


@pytest.mark.parametrize(
    "actor",
    [
        pytest.param(lambda kim: person("admin").as_actor(), id="admin"),
        pytest.param(lambda kim: kim.as_actor(kind="slack"), id="slack"),
        pytest.param(lambda kim: WORLD, id="system"),
        pytest.param(
            lambda kim: Actor(
                type="token",
                name="ci",
                user_id=kim.pk,
                role=Role.OPERATOR,
                scopes=SCOPES_OF[Role.OPERATOR],
            ),
            id="token",
        ),
    ],
)
def test_nobody_creates_a_code_for_someone_else(actor):
    kim = person("operator", "kim")

    with pytest.raises(Forbidden, match="Only you"):
        services.create_code(user=kim, actor=actor(kim), now=db_now())


def test_role_lost_meanwhile_creates_nothing():
    kim = person("operator", "kim")
    actor = kim.as_actor()
    User.objects.update(role="viewer")

    with pytest.raises(Forbidden, match="no longer allows"):
        services.create_code(user=kim, actor=actor, now=db_now())


@pytest.mark.parametrize("by", ["kim", "admin"])
def test_person_and_admin_revoke_the_code(by):
    kim, admin = person("operator", "kim"), person("admin")
    create_code(kim)
    actor = (kim if by == "kim" else admin).as_actor()

    assert services.revoke_code(user=kim, actor=actor, now=db_now())
    assert not services.revoke_code(user=kim, actor=actor, now=db_now())

    assert EmergencyCode.objects.get().revoked_at
    assert list_entries()[1:] == [("emergency_code.revoked", "user:kim")]


def test_other_people_do_not_revoke_the_code():
    kim = person("operator", "kim")
    create_code(kim)

    with pytest.raises(Forbidden):
        services.revoke_code(user=kim, actor=person("approver").as_actor(), now=db_now())

    assert services.get_current(kim)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_active": False}, "Account deactivated."),
        ({"role": "viewer"}, "Role changed to viewer."),
    ],
)
def test_code_ends_with_the_account_or_the_role(change, reason):
    kim = person("operator", "kim")
    create_code(kim)

    people.change_user(user=kim, actor=person("admin").as_actor(), now=db_now(), **change)

    assert EmergencyCode.objects.get().revoked_at
    assert [action for action, _ in list_entries()][1:] == [
        "user.changed",
        "emergency_code.revoked",
    ]
    assert AuditEntry.objects.get(action="emergency_code.revoked").reason == reason


def test_code_stays_with_a_higher_role_and_does_not_return_with_the_account():
    kim, admin = person("operator", "kim"), person("admin").as_actor()
    create_code(kim)

    people.change_user(user=kim, actor=admin, now=db_now(), role="approver")
    assert services.get_current(kim)

    deactivation.deactivate_user(user=kim, heir=None, actor=admin, now=db_now())
    people.change_user(user=kim, actor=admin, now=db_now(), is_active=True)
    assert services.get_current(kim) is None


def test_admin_who_deactivates_their_own_account_loses_the_code():
    person("admin", "other")
    ada = person("admin", "ada")
    browser_of(ada)
    actor = ada.as_actor(session=BrowserSession.objects.get().session_key)
    services.create_code(user=ada, actor=actor, now=db_now())

    people.change_user(user=ada, actor=actor, now=db_now(), is_active=False)

    assert EmergencyCode.objects.get().revoked_at


def test_person_gets_a_message_without_the_code(settings):
    settings.EMAIL = type(settings.EMAIL)("127.0.0.1", 25, "", "", "", "switchgear@example.org")
    kim = person("operator", "kim")
    kim.email = "kim@example.org"
    kim.save()

    code = create_code(kim)

    message = OutboxMessage.objects.get()
    assert message.destination == "email:kim@example.org"
    rendered = renderer.render(message.event, message.payload)
    assert rendered.title == "Emergency code of kim created"
    assert ("By", "user:kim") in rendered.lines
    assert rendered.path == "/preferences/security/"
    assert code not in str(message.payload)
    assert code.split("-")[0] not in str(AuditEntry.objects.values())


def test_use_is_recorded_for_the_code_of_its_time():
    kim = person("operator", "kim")
    now = db_now()
    services.create_code(user=kim, actor=kim.as_actor(), now=now - timedelta(hours=2))
    services.create_code(user=kim, actor=kim.as_actor(), now=now - timedelta(hours=1))

    services.record_use(kim.pk, now - timedelta(minutes=10))
    services.record_use(kim.pk, now - timedelta(minutes=20))

    old, new = EmergencyCode.objects.order_by("id")
    assert old.last_used_at is None
    assert new.last_used_at == now - timedelta(minutes=10)
