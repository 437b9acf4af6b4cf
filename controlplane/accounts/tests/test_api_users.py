"""The API for people: creation with a password shown once, and permission changes."""

import pytest
from django.test import Client

from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import Api, as_role, at_once, person, with_token
from controlplane.core.idempotency.models import IdempotencyKey
from controlplane.core.roles import ALL_SCOPES, EXCLUSIVE_SCOPES

KIM = {"username": "kim", "role": "operator", "slack_user_id": "u024be7lh", "email": "kim@b.org"}


@pytest.fixture
def admin(db):
    return as_role("admin")


def test_new_person_signs_in_with_the_password_that_is_shown_once(admin, client):
    made = admin.post("/users/", KIM, idempotency_key="k")
    again = admin.post("/users/", KIM, idempotency_key="k")

    shown = made.json()
    assert (made.status_code, shown["role"], shown["slack_user_id"]) == (
        201,
        "operator",
        "U024BE7LH",
    )
    assert again.json() == {**shown, "password": None}
    assert shown["password"] not in IdempotencyKey.objects.get().body
    kim = User.objects.get(username="kim")
    assert kim.check_password(shown["password"])
    assert kim.must_change_password is shown["must_change_password"] is True
    assert "password" not in admin.get("/users/").json()["results"][-1]
    assert AuditEntry.objects.filter(action="user.created", target="user:kim").exists()


def test_whether_the_password_must_be_changed_is_not_for_admins_to_say(admin):
    kim = person("operator", "kim")

    response = admin.patch(f"/users/{kim.pk}/", {"must_change_password": True})

    assert list(response.json()["errors"]) == ["must_change_password"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"username": ""},
        {"username": "k k"},
        {"role": "emperor"},
        {"email": "nobody"},
        {"time_zone": "Mars/Olympus"},
        {"slack_user_id": "@kim"},
    ],
)
def test_wrong_field_is_named_and_nobody_is_made(admin, wrong):
    response = admin.post("/users/", {**KIM, **wrong})

    assert response.status_code == 400
    assert list(response.json()["errors"]) == list(wrong)
    assert not User.objects.filter(email="kim@b.org").exists()


def test_name_that_is_taken_is_refused(admin):
    person("viewer", "kim")

    assert admin.post("/users/", KIM).json()["errors"].keys() == {"username"}


def test_admin_changes_a_role_and_takes_an_account_out_of_use(admin):
    kim = person("operator", "kim")

    response = admin.patch(f"/users/{kim.pk}/", {"role": "approver", "is_active": False})

    kim.refresh_from_db()
    assert (response.status_code, kim.role, kim.is_active) == (200, "approver", False)


def test_last_admin_stays(admin):
    mine = User.objects.get(role="admin")

    assert admin.patch(f"/users/{mine.pk}/", {"role": "viewer"}).status_code == 409


def test_only_admins_in_person(db):
    everything = with_token(*ALL_SCOPES - EXCLUSIVE_SCOPES)
    for caller in (everything, as_role("approver"), as_role("operator")):
        assert caller.get("/users/").status_code == 403
        assert caller.post("/users/", KIM).status_code == 403


def test_nobody_is_not_found(admin):
    assert admin.patch("/users/99999/", {"role": "viewer"}).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_of_those_who_make_the_same_person_at_once_one_does(admin):
    def make():
        browser = Client(raise_request_exception=False)
        browser.cookies = admin.client.cookies.copy()
        return Api(browser).post("/users/", KIM).status_code

    codes = at_once(*[make] * 6)

    assert sorted(codes) == [201, 400, 400, 400, 400, 400]
