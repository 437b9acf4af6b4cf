"""Roles of several people, changed at once as groups of the identity provider say."""

import json

import pytest

from controlplane.accounts.emergency_codes import services as emergency_codes
from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.roles import Role

pytestmark = pytest.mark.django_db
ACTOR = system_actor("scim")


def change(roles, actor=ACTOR):
    changed = people.change_roles(roles, actor=actor, now=db_now())
    return [each.username for each in changed]


def test_only_people_whose_role_differs_are_changed_and_audited():
    ada, kim, pat = person("admin", "ada"), person("viewer", "kim"), person("operator", "pat")

    changed = change({kim.pk: Role.OPERATOR, pat.pk: Role.OPERATOR})

    assert changed == ["kim"]
    kim.refresh_from_db()
    ada.refresh_from_db()
    assert (kim.role, ada.role) == ("operator", "admin")
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.target) == ("user.changed", "user:kim")
    assert json.loads(entry.before)["role"] == "viewer"
    assert json.loads(entry.after)["role"] == "operator"


def test_one_admin_stays():
    ada, bob = person("admin", "ada"), person("admin", "bob")

    assert change({ada.pk: Role.VIEWER, bob.pk: Role.VIEWER}) == ["bob"]
    assert list(User.objects.filter(role="admin")) == [ada]


def test_emergency_code_ends_with_the_role_that_allowed_it():
    person("admin", "ada")
    kim, pat = person("operator", "kim"), person("operator", "pat")
    for each in (kim, pat):
        emergency_codes.create_code(user=each, actor=each.as_actor(), now=db_now())

    change({kim.pk: Role.VIEWER, pat.pk: Role.APPROVER})

    assert emergency_codes.get_current(kim) is None
    assert emergency_codes.get_current(pat) is not None


def test_the_directory_revokes_emergency_codes_of_those_it_deactivates():
    ada, kim = person("admin", "ada"), person("operator", "kim")
    emergency_codes.create_code(user=kim, actor=kim.as_actor(), now=db_now())
    token, _ = tokens.create_token(
        name="okta", owner=ada, scopes=["scim"], actor=ACTOR, now=db_now()
    )
    actor = ada.as_actor()
    directory = type(actor)(
        type="token",
        name=token.name,
        user_id=ada.pk,
        token_id=token.pk,
        role=Role.ADMIN,
        scopes=frozenset({"scim"}),
    )

    people.change_user(user=kim, actor=directory, now=db_now(), is_active=False)

    assert emergency_codes.get_current(kim) is None


@pytest.mark.parametrize(
    ("proposed", "free"),
    [("Kim", "Kim"), ("o'brien@x.org", "obrien@x.org"), ("PAT", "PAT-3"), ("", "person")],
)
def test_free_name_has_only_characters_that_names_may_have(proposed, free):
    for taken in ("pat", "pat-2"):
        person("viewer", taken)

    assert people.find_free_username(proposed) == free
