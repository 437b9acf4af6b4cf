"""Users: created or found here, changed, deactivated, and never deleted."""

import json

import pytest

from controlplane.accounts.models import DirectoryUser, Membership, Team
from controlplane.accounts.models.people import User
from controlplane.accounts.scim.tests.caller import account
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person

KIM = {
    "externalId": "00u1",
    "displayName": "Kim Park",
    "name": {"givenName": "Kim", "familyName": "Park"},
    "emails": [{"value": "kim@example.com", "type": "work", "primary": True}],
}


def fields(user):
    return user.display_name, user.email, user.role, user.is_active


def actions():
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


def test_created_user_is_a_viewer_without_a_password(directory):
    kim = directory.user(**KIM, password="ignored", title="ignored")

    user = account(kim)
    assert user.username == "kim@example.com"
    assert fields(user) == ("Kim Park", "kim@example.com", "viewer", True)
    assert not user.has_usable_password()
    assert kim["schemas"] == ["urn:ietf:params:scim:schemas:core:2.0:User"]
    assert {name: kim[name] for name in KIM} == KIM
    assert "password" not in kim
    assert kim["meta"]["location"].endswith(f"/scim/v2/Users/{kim['id']}")
    assert directory.get(f"Users/{kim['id']}") == kim
    entry = AuditEntry.objects.get(action="user.created")
    assert (entry.actor_type, entry.actor_name) == ("token", "okta")
    link = AuditEntry.objects.get(action="user.linked")
    assert json.loads(link.after) == {"userName": "kim@example.com", "externalId": "00u1"}


@pytest.mark.parametrize(
    ("name", "username"),
    [
        ("o'brien@example.com", "obrien@example.com"),
        ("金敏智", "金敏智"),
        ("हिन्दी", "हनद"),
        ("ليلى حداد", "ليلىحداد"),
        ("e\u0301mile", "émile"),
        ("ＫＩＭ", "KIM"),
        ("💡", "person"),
        ("a" * 254, "a" * 140),
    ],
)
def test_user_name_may_be_in_any_script(directory, name, username):
    created = directory.user(name)

    assert account(created).username == username
    assert directory.find("Users", f'userName eq "{name}"') == [created["id"]]


@pytest.mark.parametrize("flag", [True, False, None])
def test_addresses_are_stored_as_sent(directory, flag):
    mark = {} if flag is None else {"primary": flag}
    emails = [{"value": "a@x.org", "type": "home", **mark}, {"value": "b@x.org", "type": "work"}]

    kim = directory.user(emails=emails)

    assert kim["emails"] == emails
    assert account(kim).email == ("a@x.org" if flag else "b@x.org")


def test_users_whose_names_are_alike_here_have_different_accounts(directory):
    person("viewer", "obrien")

    first, second = directory.user("o'brien"), directory.user("o`brien")

    assert account(first).username == "obrien-2"
    assert account(second).username == "obrien-3"


@pytest.mark.parametrize("name", ["kim@example.com", "KIM@Example.com", "ｋim@example.com"])
def test_name_that_is_taken_is_refused(directory, name):
    directory.user()

    answer = directory.send("post", "Users", {"userName": name})

    assert answer.status_code == 409
    assert answer.json()["scimType"] == "uniqueness"
    assert DirectoryUser.objects.count() == 1


@pytest.mark.parametrize("by", ["name", "address"])
def test_account_that_is_here_already_is_taken_over(directory, by):
    kim = person("operator", "kim@example.com" if by == "name" else "kim")
    User.objects.filter(pk=kim.pk).update(email="Kim@example.com", display_name="Kimmy")

    found = directory.user(emails=KIM["emails"])

    assert found["id"] == str(kim.pk)
    assert fields(account(found)) == ("Kimmy", "kim@example.com", "operator", True)
    assert "user.linked" in actions()


def test_account_of_that_name_with_another_address_is_somebody_elses(directory):
    boss = person("admin", "kim")
    User.objects.filter(pk=boss.pk).update(email="kim.lee@example.com")

    found = directory.user("kim", emails=KIM["emails"])

    user = account(found)
    assert (user.username, user.role) == ("kim-2", "viewer")


def test_account_whose_name_only_looks_alike_is_somebody_elses(directory):
    person("admin", "kim")

    user = account(directory.user("k\u0131m"))

    assert user.role == "viewer"
    assert User.objects.get(username="kim").role == "admin"


def test_address_of_several_accounts_finds_none(directory):
    for name in ("kim", "kim2"):
        User.objects.filter(pk=person("viewer", name).pk).update(email="kim@example.com")

    answer = directory.send("post", "Users", {"userName": "k", "emails": KIM["emails"]})

    assert (answer.status_code, answer.json()["scimType"]) == (409, "uniqueness")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"userName": ""},
        {"userName": "  "},
        {"userName": None},
        {"userName": 7},
        {"userName": "a" * 255},
        {"userName": "k\x07m"},
        {"userName": "kim", "active": "perhaps"},
        {"userName": "kim", "name": "Kim"},
        {"userName": "kim", "displayName": "x" * 151},
        {"userName": "kim", "displayName": ["x"]},
        {"userName": "kim", "emails": "kim@example.com"},
        {"userName": "kim", "emails": [{"value": "not an address"}]},
        {"userName": "kim", "emails": [{"value": f"{n}@x.org"} for n in range(21)]},
        {
            "userName": "kim",
            "emails": [
                {"value": "a@x.org", "primary": True},
                {"value": "b@x.org", "primary": True},
            ],
        },
    ],
)
def test_wrong_users_are_refused(directory, body):
    answer = directory.send("post", "Users", body)

    assert answer.status_code == 400, answer.content
    assert answer.json()["scimType"] == "invalidValue"
    assert answer.json()["status"] == "400"
    assert not DirectoryUser.objects.exists()


def test_patched_user_is_changed_once(directory):
    kim = directory.user(**KIM)
    rename = {"op": "replace", "path": "displayName", "value": "Kim P."}

    first = directory.patch(f"Users/{kim['id']}", rename)
    count = len(actions())
    again = directory.patch(f"Users/{kim['id']}", rename)

    assert first.json()["displayName"] == account(kim).display_name == "Kim P."
    assert first.json() == again.json()
    assert first["ETag"] == again["ETag"] != kim["meta"]["version"]
    assert len(actions()) == count


def test_replaced_user_loses_what_is_missing_but_stays_as_active_as_before(directory):
    kim = directory.user(**KIM)
    directory.patch(f"Users/{kim['id']}", {"op": "replace", "value": {"active": False}})

    answer = directory.send("put", f"Users/{kim['id']}", {"userName": "kim.park"})

    assert answer.status_code == 200
    assert answer.json()["userName"] == "kim.park"
    assert account(kim).username == "kim@example.com"
    assert fields(account(kim)) == ("", "", "viewer", False)
    assert "externalId" not in answer.json()


@pytest.mark.parametrize("how", ["patch", "delete"])
def test_deactivated_person_is_signed_out(directory, how):
    kim = directory.user(**KIM)
    browser = browser_of(account(kim))
    assert browser.get("/preferences/").status_code == 200

    if how == "delete":
        assert directory.send("delete", f"Users/{kim['id']}").status_code == 204
    else:
        directory.patch(f"Users/{kim['id']}", {"op": "Replace", "path": "active", "value": "False"})

    assert browser.get("/preferences/").status_code == 302
    assert account(kim).is_active is False
    assert "session.revoked" in actions()


def test_deleted_user_is_gone_from_the_directory_and_can_come_back(directory):
    kim = directory.user(**KIM)
    group = directory.group("operator", kim["id"])
    assert account(kim).role == "operator"

    assert directory.send("delete", f"Users/{kim['id']}").status_code == 204

    for method in ("get", "delete"):
        answer = directory.send(method, f"Users/{kim['id']}")
        assert (answer.status_code, answer.json()["status"]) == (404, "404")
    assert directory.get("Users")["totalResults"] == 0
    assert "members" not in directory.get(f"Groups/{group['id']}")
    assert fields(account(kim))[2:] == ("viewer", False)

    back = directory.user(**KIM)

    assert back["id"] == kim["id"]
    assert fields(account(kim)) == ("Kim Park", "kim@example.com", "viewer", True)


@pytest.mark.parametrize("how", ["patch", "put", "delete"])
def test_last_active_admin_stays(directory, admin, how):
    root = directory.user("root")
    assert root["id"] == str(admin.pk)
    path = f"Users/{admin.pk}"

    if how == "patch":
        answer = directory.patch(path, {"op": "replace", "path": "active", "value": False})
    elif how == "put":
        answer = directory.send("put", path, {"userName": "root", "active": False})
    else:
        answer = directory.send("delete", path)

    assert answer.status_code == 409
    assert "last active admin" in answer.json()["detail"]
    admin.refresh_from_db()
    assert (admin.role, admin.is_active) == ("admin", True)
    assert directory.get(path)["active"] is True


def test_owner_of_the_token_can_be_deactivated_by_it(directory, admin):
    person("admin", "ada")
    directory.user("root")
    team = Team.objects.create(slug="a", name="A", member_group="a", created_at=db_now())
    directory.group("a", str(admin.pk))
    assert Membership.objects.get(user=admin).team == team

    assert directory.send("delete", f"Users/{admin.pk}").status_code == 204

    admin.refresh_from_db()
    assert not admin.is_active
    assert not Membership.objects.exists()
    assert directory.send("get", "Users").status_code == 401


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        ('userName eq "KIM@example.com"', "kim"),
        ('userName sw "kim" or userName sw "pat"', "kim pat"),
        ('userName co "@example" and active eq true', "kim"),
        ('userName ne "kim@example.com"', "pat"),
        ('externalId eq "00u1"', "kim"),
        ('externalId eq "00U1"', ""),
        ("externalId pr", "kim"),
        ("not (externalId pr)", "pat"),
        ('emails.value eq "kim@Example.com"', "kim"),
        ('emails eq "kim@example.com"', "kim"),
        ('emails[type eq "work" and value ew "example.com"]', "kim"),
        ('emails[type eq "home"]', ""),
        ('name.familyName eq "park"', "kim"),
        ("name.familyName pr", "kim"),
        ('displayName co "kim"', "kim"),
        ('active eq "False"', "pat"),
        ('meta.lastModified gt "2020-01-01T00:00:00Z"', "kim pat"),
        ('meta.created lt "2020-01-01T00:00:00Z"', ""),
        ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "kim@example.com"', "kim"),
        ('userName eq "%"', ""),
        ('id eq "kim"', ""),
    ],
)
def test_users_are_filtered(directory, filter_, found):
    kim = directory.user(**KIM)
    pat = directory.user("pat@example.com", active=False)
    names = {kim["id"]: "kim", pat["id"]: "pat"}

    assert " ".join(names[each] for each in directory.find("Users", filter_)) == found


@pytest.mark.parametrize(
    "filter_",
    ["userName", 'title eq "x"', "active eq 7", 'userName gt "a"', "userName eq true", "id gt 5",
     'meta.created gt "yesterday"', 'groups[value eq "1"]'],
)  # fmt: skip
def test_filters_that_are_not_supported_are_refused(directory, filter_):
    answer = directory.client.get("/scim/v2/Users", {"filter": filter_})

    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidFilter")


def test_page_has_the_requested_users(directory):
    ids = [directory.user(f"user{number}")["id"] for number in range(5)]

    def page(**parameters):
        found = directory.get("Users", **parameters)
        return [each["id"] for each in found["Resources"]], found["startIndex"]

    assert page() == (ids, 1)
    assert page(startIndex=2, count=2) == (ids[1:3], 2)
    assert page(startIndex=5, count=200) == (ids[4:], 5)
    assert page(startIndex=0, count=1000) == (ids, 1)
    assert page(startIndex=99) == ([], 99)
    assert page(count=0) == page(count=-5) == ([], 1)
    assert directory.get("Users", count=0)["totalResults"] == 5
    assert directory.client.get("/scim/v2/Users", {"count": "all"}).status_code == 400


def test_client_chooses_attributes(directory):
    kim = directory.user(**KIM)
    path = f"Users/{kim['id']}"

    assert set(directory.get(path, attributes="userName")) == {"schemas", "id", "userName"}
    assert directory.get(path, attributes="NAME.givenname")["name"] == {"givenName": "Kim"}
    left = directory.get(path, excludedAttributes="emails,name.givenName,id")
    assert left["name"] == {"familyName": "Park"}
    assert "emails" not in left
    assert left["id"] == kim["id"]
