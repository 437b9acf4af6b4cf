"""Django's admin: history is only read, people are changed through services, one sign-in."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.checks import check_admin_app

from controlplane.accounts.models import Token
from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http import confirmation
from controlplane.core.http.tests.callers import as_role, person, token_text

import_module("controlplane.urls")  # Loads all admin pages.
pytestmark = pytest.mark.django_db
USERS = "/admin/core/user/"
HISTORY = (
    "core.AuditEntry",
    "core.OutboxMessage",
    "core.Approval",
    "core.IdempotencyKey",
    "core.Credentials",
    "core.Tick",
    "core.Heartbeat",
    "core.Token",
    "axes.AccessAttempt",
)


@pytest.mark.parametrize("label", ["core", "switches", "breakers"])
def test_every_model_is_there(label):
    for model in apps.get_app_config(label).get_models():
        assert admin.site.is_registered(model), model


@pytest.mark.parametrize("name", HISTORY)
def test_history_can_only_be_looked_at(name, rf):
    request = rf.get("/")
    request.user = person("admin")
    model_admin = admin.site.get_model_admin(apps.get_model(name))

    assert model_admin.has_view_permission(request)
    assert not model_admin.has_add_permission(request)
    assert not model_admin.has_change_permission(request)
    assert not model_admin.has_delete_permission(request)


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_admins_enter(role):
    response = as_role(role).client.get("/admin/", follow=True)

    assert response.status_code == 403
    assert "requires the role admin" in response.content.decode()


def form(**fields):
    return {
        "username": "nora",
        "display_name": "",
        "email": "",
        "role": "operator",
        "time_zone": "Asia/Seoul",
        "is_active": "on",
        "new_password": "a-fine-secret-77",
        **fields,
    }


def test_person_is_made_through_the_service():
    as_role("admin").client.post(f"{USERS}add/", form())

    nora = User.objects.get(username="nora")
    assert (nora.role, nora.time_zone) == ("operator", "Asia/Seoul")
    assert nora.check_password("a-fine-secret-77")
    assert nora.must_change_password
    entry = AuditEntry.objects.get(action="user.created")
    assert (entry.actor_name, entry.target) == ("a-admin", "user:nora")


@pytest.mark.parametrize(
    "fields", [{"new_password": ""}, {"new_password": "123"}, {"time_zone": "Mars"}, {"role": "x"}]
)
def test_wrong_field_makes_nobody(fields):
    as_role("admin").client.post(f"{USERS}add/", form(**fields))

    assert not User.objects.filter(username="nora").exists()


def test_role_is_changed_through_the_service():
    nora = person("viewer", "nora")

    as_role("admin").client.post(
        f"{USERS}{nora.pk}/change/", form(role="approver", time_zone="UTC", new_password="")
    )

    nora.refresh_from_db()
    assert nora.role == "approver"
    entry = AuditEntry.objects.get(action="user.changed")
    assert '"role":"viewer"' in entry.before
    assert '"role":"approver"' in entry.after


@pytest.mark.parametrize(("name", "must_change"), [("nora", True), ("a-admin", False)])
def test_password_of_somebody_else_must_be_changed_by_them(name, must_change):
    client = as_role("admin").client
    person("operator", "nora")
    user = User.objects.get(username=name)

    client.post(f"{USERS}{user.pk}/change/", form(username=name, role=user.role, time_zone="UTC"))

    user.refresh_from_db()
    assert user.check_password("a-fine-secret-77")
    assert user.must_change_password is must_change


def test_last_admin_can_not_be_lost():
    client = as_role("admin").client
    me = User.objects.get(username="a-admin")

    response = client.post(
        f"{USERS}{me.pk}/change/",
        form(username="a-admin", role="viewer", time_zone="UTC", new_password=""),
        follow=True,
    )

    me.refresh_from_db()
    assert me.role == "admin"
    assert "last active admin" in response.content.decode()


def test_people_are_deactivated_never_deleted():
    nora = person("operator", "nora")
    client = as_role("admin").client

    client.post(USERS, {"action": "deactivate", "_selected_action": [nora.pk]})

    nora.refresh_from_db()
    assert not nora.is_active
    assert client.post(f"{USERS}{nora.pk}/delete/", {"post": "yes"}).status_code == 403
    assert User.objects.filter(pk=nora.pk).exists()


def test_token_is_revoked_and_its_digest_is_never_shown():
    owner = person("admin", "owner")
    token_text(owner, ["switches:read"])
    token = Token.objects.get()
    client = as_role("admin").client

    client.post("/admin/core/token/", {"action": "revoke", "_selected_action": [token.pk]})

    token.refresh_from_db()
    assert token.revoked_at is not None
    assert AuditEntry.objects.filter(action="token.revoked").exists()
    assert token.digest not in client.get(f"/admin/core/token/{token.pk}/change/").content.decode()


def test_audit_row_can_be_read_and_not_written():
    client = as_role("admin").client
    client.post(f"{USERS}add/", form())
    path = f"/admin/core/auditentry/{AuditEntry.objects.latest('id').pk}"

    assert client.get(f"{path}/change/").status_code == 200
    assert client.post(f"{path}/change/", {"reason": "never happened"}).status_code == 403
    assert client.post(f"{path}/delete/", {"post": "yes"}).status_code == 403


def test_signing_out_of_the_admin_is_noted_like_any_other():
    as_role("admin").client.post("/admin/logout/")

    assert AuditEntry.objects.get().action == "session.ended"


def test_who_signed_in_long_ago_confirms_before_people_and_tokens_change():
    client, nora = as_role("admin").client, person("operator", "nora")
    token_text(nora, ["switches:read"])
    session = client.session
    session[confirmation.KEY] = 0
    session.save()
    me = User.objects.get(username="a-admin")
    entries = AuditEntry.objects.count()
    sent = [
        (f"{USERS}add/", form(username="eve", role="admin")),
        (f"{USERS}{me.pk}/change/", form(username="a-admin", role="admin")),
        (USERS, {"action": "deactivate", "_selected_action": [nora.pk]}),
        ("/admin/core/token/", {"action": "revoke", "_selected_action": [Token.objects.get().pk]}),
    ]

    for path, given in sent:
        assert client.post(path, given)["Location"].startswith("/confirm/?next=%2Fadmin"), path
    assert client.get(f"{USERS}add/")["Location"].startswith("/confirm/")
    assert AuditEntry.objects.count() == entries
    assert client.get(USERS).status_code == 200


@pytest.mark.parametrize(
    "address",
    [
        "/admin/core/user/?password__startswith=p",
        "/admin/core/target/?webhook_url__startswith=h",
        "/admin/core/browsersession/?session_data__contains=a",
        "/admin/core/token/?digest__startswith=0",
        "/admin/core/token/?owner__password__startswith=p",
    ],
)
def test_hidden_column_can_not_be_asked_for_by_address(address):
    answer = as_role("admin").client.get(address)

    assert answer.status_code == 400


def test_offered_filter_still_filters():
    api = as_role("admin")

    assert api.client.get("/admin/core/user/?role__exact=admin").status_code == 200


def test_all_admin_pages_pass_djangos_checks():
    assert len(admin.site._registry) > 40
    assert check_admin_app(app_configs=None) == []
