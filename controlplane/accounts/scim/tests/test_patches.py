"""PATCH operations as RFC 7644 says, and as Okta and Entra ID send them."""

import pytest

from controlplane.accounts.scim.errors import InvalidRequest
from controlplane.accounts.scim.patches import apply_patch
from controlplane.accounts.scim.schemas import GROUPS, USERS

WORK = {"value": "kim@work.org", "type": "work", "primary": True}
HOME = {"value": "kim@home.org", "type": "home"}
KIM = {"userName": "kim", "name": {"givenName": "Kim", "familyName": "Park"}, "emails": [WORK]}
TEAM = {"displayName": "payments", "members": [{"value": "2"}, {"value": "3"}]}
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"


def patch(resource, document, *operations):
    return apply_patch(resource, document, {"Operations": list(operations)})


@pytest.mark.parametrize(
    ("operation", "changes"),
    [
        ({"op": "Replace", "path": "active", "value": "False"}, {"active": "False"}),
        ({"op": "replace", "path": "USERNAME", "value": "pat"}, {"userName": "pat"}),
        ({"op": "replace", "value": {"active": False, "userName": "pat"}},
         {"active": False, "userName": "pat"}),
        ({"op": "add", "value": {"name.familyName": "Kim"}},
         {"name": {"givenName": "Kim", "familyName": "Kim"}}),
        ({"op": "replace", "path": "name", "value": {"givenName": "K"}},
         {"name": {"givenName": "K", "familyName": "Park"}}),
        ({"op": "remove", "path": "name.familyName"}, {"name": {"givenName": "Kim"}}),
        ({"op": "replace", "path": "emails[type eq \"work\"].value", "value": "k@work.org"},
         {"emails": [{**WORK, "value": "k@work.org"}]}),
        ({"op": "add", "path": "emails[type eq \"home\"].value", "value": "kim@home.org"},
         {"emails": [WORK, HOME]}),
        ({"op": "add", "path": "emails", "value": [HOME, WORK]}, {"emails": [WORK, HOME]}),
        ({"op": "add", "path": "emails", "value": {**HOME, "primary": True}},
         {"emails": [{"value": "kim@work.org", "type": "work"}, {**HOME, "primary": True}]}),
        ({"op": "replace", "path": "emails", "value": [HOME]}, {"emails": [HOME]}),
        ({"op": "remove", "path": "emails"}, {"emails": []}),
        ({"op": "remove", "path": "emails[type eq \"work\"]"}, {"emails": []}),
        ({"op": "remove", "path": "emails[type eq \"home\"]"}, {}),
        ({"op": "add", "path": "title", "value": "Engineer"}, {}),
        ({"op": "add", "path": f"{ENTERPRISE}:department", "value": "Sales"}, {}),
        ({"op": "replace", "value": {ENTERPRISE: {"department": "Sales"}}}, {}),
        ({"op": "replace", "value": {"schemas": ["x"], "active": True}}, {"active": True}),
    ],
)  # fmt: skip
def test_user_is_patched(operation, changes):
    assert patch(USERS, KIM, operation) == {**KIM, **changes}


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ({"op": "Add", "path": "members", "value": [{"value": "4"}, {"value": "3"}]}, "234"),
        ({"op": "add", "value": {"members": [{"value": "4"}]}}, "234"),
        ({"op": "remove", "path": 'members[value eq "2"]'}, "3"),
        ({"op": "remove", "path": 'members[value eq "9"]'}, "23"),
        ({"op": "remove", "path": 'members[value eq "2" or value eq "3"]'}, ""),
        # Entra ID names those to remove in the value.
        ({"op": "Remove", "path": "members", "value": [{"value": "2"}]}, "3"),
        ({"op": "remove", "path": "members"}, ""),
        ({"op": "replace", "path": "members", "value": [{"value": "5"}]}, "5"),
        ({"op": "replace", "path": "members", "value": []}, ""),
        ({"op": "replace", "value": {"id": "1", "displayName": "x"}}, None),
    ],
)
def test_group_is_patched(operation, members):
    if members is None:
        with pytest.raises(InvalidRequest):
            patch(GROUPS, TEAM, operation)
        return
    patched = patch(GROUPS, TEAM, operation)

    assert "".join(each["value"] for each in patched["members"]) == members


def test_the_document_itself_stays():
    patch(USERS, KIM, {"op": "remove", "path": "emails"}, {"op": "remove", "path": "name"})

    assert KIM["emails"] == [WORK]
    assert KIM["name"]["givenName"] == "Kim"


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ({"op": "move", "path": "active"}, "invalidSyntax"),
        ({"path": "active", "value": True}, "invalidSyntax"),
        ("remove", "invalidSyntax"),
        ({"op": "remove"}, "noTarget"),
        ({"op": "add", "value": "x"}, "invalidValue"),
        ({"op": "add", "path": 7, "value": "x"}, "invalidPath"),
        ({"op": "add", "path": "a b", "value": "x"}, "invalidPath"),
        ({"op": "replace", "path": 'userName[type eq "x"]', "value": "x"}, "invalidPath"),
        ({"op": "replace", "path": "id", "value": "7"}, "mutability"),
        ({"op": "replace", "path": "meta.version", "value": "7"}, "mutability"),
        ({"op": "add", "path": "groups", "value": []}, "mutability"),
        ({"op": "remove", "path": "userName"}, "mutability"),
        ({"op": "replace", "path": 'emails[type eq "x"].value', "value": "x"}, "noTarget"),
        ({"op": "add", "path": 'emails[type co "x"].value', "value": "x"}, "noTarget"),
        ({"op": "add", "path": "emails", "value": "kim@work.org"}, "invalidValue"),
    ],
)
def test_what_can_not_be_carried_out_is_refused(operation, kind):
    with pytest.raises(InvalidRequest) as refused:
        patch(USERS, KIM, operation)

    assert refused.value.extra["scimType"] == kind


def test_part_of_what_became_a_text_is_refused():
    name = {"op": "replace", "path": "name", "value": "Kim Park"}
    part = {"op": "add", "path": "name.givenName", "value": "Kim"}

    with pytest.raises(InvalidRequest) as refused:
        patch(USERS, KIM, name, part)

    assert refused.value.extra["scimType"] == "invalidValue"


@pytest.mark.parametrize("body", [{}, {"Operations": []}, {"Operations": "x"}])
def test_request_without_operations_is_refused(body):
    with pytest.raises(InvalidRequest):
        apply_patch(USERS, KIM, body)
