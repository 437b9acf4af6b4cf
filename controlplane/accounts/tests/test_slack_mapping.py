"""Slack accounts of people: only admins set them."""

import pytest

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput
from controlplane.core.http.tests.callers import as_role, person, signed_in

pytestmark = pytest.mark.django_db


def change(user, **fields):
    return services.change_user(user=user, actor=system_actor("test"), now=db_now(), **fields)


def form(user, **fields):
    return {
        "username": user.username,
        "display_name": "",
        "email": "",
        "slack_user_id": "",
        "role": user.role,
        "time_zone": "UTC",
        "is_active": "on",
        "new_password": "",
        **fields,
    }


def test_admin_connects_a_person_and_it_is_audited():
    nora = person("operator", "nora")

    as_role("admin").client.post(
        f"/admin/core/user/{nora.pk}/change/",
        form(nora, slack_user_id=" u024be7lh ", email="nora@example.org"),
    )

    nora.refresh_from_db()
    assert (nora.slack_user_id, nora.email) == ("U024BE7LH", "nora@example.org")
    entry = AuditEntry.objects.get(action="user.changed")
    assert '"slack_user_id":""' in entry.before
    assert '"slack_user_id":"U024BE7LH"' in entry.after


def test_new_person_is_made_connected():
    made = services.create_user(
        username="nora",
        password=None,
        role="operator",
        slack_user_id="u024be7lh",
        actor=system_actor("test"),
        now=db_now(),
    )

    assert made.slack_user_id == "U024BE7LH"


@pytest.mark.parametrize(
    "text", ["nora", "@nora", "U1", "U024 BE7", "C024BE91L", "U" * 41, "Ünora"]
)
def test_what_is_no_member_id_is_refused(text):
    nora = person("operator", "nora")

    with pytest.raises(InvalidInput, match="member ID"):
        change(nora, slack_user_id=text)


def test_account_of_somebody_else_is_refused_and_they_are_named():
    change(person("operator", "kim"), slack_user_id="U024BE7LH")
    nora = person("operator", "nora")

    with pytest.raises(InvalidInput, match="kim already uses it"):
        change(nora, slack_user_id="u024be7lh")
    page = as_role("admin").client.post(
        f"/admin/core/user/{nora.pk}/change/", form(nora, slack_user_id="U024BE7LH")
    )
    assert "kim already uses it" in page.content.decode()


def test_connection_is_kept_and_ended():
    nora = change(person("operator", "nora"), slack_user_id="U024BE7LH")

    assert change(nora, slack_user_id="U024BE7LH").slack_user_id == "U024BE7LH"
    assert change(nora, slack_user_id="").slack_user_id == ""


def test_person_sees_their_own_and_can_not_change_it():
    nora = person("operator", "nora")
    change(nora, slack_user_id="U024BE7LH", email="nora@example.org")
    client = signed_in(nora).client

    html = client.get("/preferences/").content.decode()
    assert "U024BE7LH" in html
    assert "nora@example.org" in html
    assert 'name="slack_user_id"' not in html
    client.post(
        "/preferences/",
        {
            "display_name": "N",
            "time_zone": "UTC",
            "slack_user_id": "U0ADMIN",
            "email": "x@evil.example",
        },
    )
    found = User.objects.get(username="nora")
    assert (found.display_name, found.slack_user_id, found.email) == (
        "N",
        "U024BE7LH",
        "nora@example.org",
    )
