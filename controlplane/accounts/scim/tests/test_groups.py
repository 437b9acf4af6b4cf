"""Groups: members, roles by OIDC_ROLES, and memberships of teams."""

import json

import pytest

from controlplane.accounts.models import DirectoryGroup, DirectoryUser, Membership, Team
from controlplane.accounts.models.people import User
from controlplane.accounts.scim.tests.caller import account
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person


@pytest.fixture
def kim(directory):
    return directory.user("kim")


@pytest.fixture
def pat(directory):
    return directory.user("pat")


@pytest.fixture
def team(db):
    return Team.objects.create(
        slug="payments",
        name="Payments",
        member_group="pay",
        lead_group="leads",
        created_at=db_now(),
    )


def members_of(directory, group):
    shown = directory.get(f"Groups/{group['id']}").get("members", ())
    return [each["display"] for each in shown]


def memberships():
    return set(Membership.objects.values_list("user__username", "role", "source"))


def test_names_of_groups_are_kept_as_teams_write_them(directory):
    decomposed = "e\u0301quipe"
    assert directory.group(decomposed)["displayName"] == "\u00e9quipe"
    assert directory.group("ops\u2122")["displayName"] == "ops\u2122"
    wide = directory.group("\uff41dmins")

    assert wide["displayName"] == "\uff41dmins"
    assert directory.find("Groups", 'displayName eq "admins"') == []
    assert directory.find("Groups", 'displayName eq "\uff41dmins"') == [wide["id"]]


def test_created_group_has_its_members(directory, kim, pat):
    group = directory.group("search", kim["id"], pat["id"], kim["id"], externalId="g1")

    assert group["schemas"] == ["urn:ietf:params:scim:schemas:core:2.0:Group"]
    assert (group["displayName"], group["externalId"]) == ("search", "g1")

    assert members_of(directory, group) == ["kim", "pat"]
    shown = directory.get(f"Users/{kim['id']}")["groups"]
    assert [(each["value"], each["display"]) for each in shown] == [(group["id"], "search")]
    entry = AuditEntry.objects.get(action="group.created")
    assert entry.target == "group:search"
    assert json.loads(entry.after)["added"] == ["kim", "pat"]


def test_members_are_added_and_removed_once(directory, kim, pat):
    group = directory.group("search")
    path = f"Groups/{group['id']}"
    add = {"op": "add", "path": "members", "value": [{"value": kim["id"]}, {"value": pat["id"]}]}
    remove = {"op": "remove", "path": f'members[value eq "{kim["id"]}"]'}

    first, again = directory.patch(path, add), directory.patch(path, add)
    assert (first.status_code, again.status_code) == (204, 204)
    assert first["ETag"] == again["ETag"] != group["meta"]["version"]
    assert members_of(directory, group) == ["kim", "pat"]

    directory.patch(path, remove)
    directory.patch(path, remove)
    assert members_of(directory, group) == ["pat"]
    changes = AuditEntry.objects.filter(action="group.changed").order_by("id")
    assert [json.loads(each.after)["added"] for each in changes] == [["kim", "pat"], []]
    assert [json.loads(each.before)["removed"] for each in changes] == [[], ["kim"]]


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["operator"], "operator"),
        (["operator", "admin", "viewer"], "admin"),
        (["elsewhere"], "viewer"),
        ([], "viewer"),
    ],
)
def test_strongest_role_of_the_groups_counts(directory, kim, groups, role):
    for group in groups:
        directory.group(group, kim["id"])

    assert account(kim).role == role


def test_role_follows_the_groups(directory, kim):
    operators, approvers = (directory.group(name, kim["id"]) for name in ("operator", "approver"))
    assert account(kim).role == "approver"

    directory.send("delete", f"Groups/{approvers['id']}")
    assert account(kim).role == "operator"

    directory.send("put", f"Groups/{operators['id']}", {"displayName": "operator"})
    assert account(kim).role == "viewer"


def test_external_id_gives_a_role_too(directory, kim):
    directory.group("People who operate", kim["id"], externalId="operator")

    assert account(kim).role == "operator"


def test_group_without_a_role_leaves_the_role_of_an_account_that_was_here(directory):
    person("approver", "ada")
    ada = directory.user("ada")

    directory.group("elsewhere", ada["id"])

    assert account(ada).role == "approver"


def test_role_set_by_hand_is_set_back_with_the_next_change(directory, kim):
    directory.group("operator", kim["id"])
    User.objects.filter(pk=kim["id"]).update(role="admin")

    directory.patch(f"Users/{kim['id']}", {"op": "add", "path": "displayName", "value": "Kim"})

    assert account(kim).role == "operator"


def test_last_admin_keeps_the_role(directory, admin):
    root = directory.user("root")
    group = directory.group("admin", root["id"])

    assert directory.send("delete", f"Groups/{group['id']}").status_code == 204

    admin.refresh_from_db()
    assert admin.role == "admin"
    directory.group("operator", root["id"])
    assert (
        directory.patch(
            f"Users/{root['id']}", {"op": "add", "path": "displayName", "value": "Root"}
        ).json()["displayName"]
        == "Root"
    )
    admin.refresh_from_db()
    assert admin.role == "admin"


def test_owner_of_the_token_can_lose_the_role_by_it(directory, admin, kim):
    person("admin", "ada")
    root = directory.user("root")
    group = directory.group("admin", kim["id"], root["id"])

    answer = directory.send("delete", f"Groups/{group['id']}")

    assert answer.status_code == 204
    assert (account(root).role, account(kim).role) == ("viewer", "viewer")
    assert directory.send("get", "Users").status_code == 403


def test_teams_follow_the_groups(directory, team, kim, pat):
    group = directory.group("pay", kim["id"], pat["id"])
    leads = directory.group("leads", kim["id"])
    assert memberships() == {("kim", "lead", "group"), ("pat", "member", "group")}

    directory.patch(f"Groups/{leads['id']}", {"op": "remove", "path": "members"})
    directory.patch(
        f"Groups/{group['id']}",
        {"op": "remove", "path": "members", "value": [{"value": pat["id"]}]},
    )

    assert memberships() == {("kim", "member", "group")}
    documents = AuditEntry.objects.filter(action="team.changed").order_by("id")
    sizes = [len(json.loads(each.after)["members"]) for each in documents]
    assert sizes == [2, 2, 2, 1]


def test_renamed_group_counts_by_its_new_name(directory, team, kim):
    group = directory.group("pay", kim["id"])
    rename = {"op": "replace", "path": "displayName", "value": "operator"}

    directory.patch(f"Groups/{group['id']}", rename)

    assert memberships() == set()
    assert account(kim).role == "operator"
    directory.patch(f"Groups/{group['id']}", {**rename, "value": "PAY"})
    assert memberships() == set()
    directory.patch(f"Groups/{group['id']}", {**rename, "value": "pay"})
    assert memberships() == {("kim", "member", "group")}
    assert account(kim).role == "viewer"


@pytest.mark.parametrize("name", ["pay", "PAY", " pay "])
def test_name_that_is_taken_is_refused(directory, name):
    directory.group("pay")
    other = directory.group("other")

    created = directory.send("post", "Groups", {"displayName": name})
    renamed = directory.patch(
        f"Groups/{other['id']}", {"op": "replace", "path": "displayName", "value": name}
    )

    for answer in (created, renamed):
        assert (answer.status_code, answer.json()["scimType"]) == (409, "uniqueness")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"displayName": ""},
        {"displayName": "x" * 256},
        {"displayName": "x", "members": ["2"]},
        {"displayName": "x", "members": [{"value": "no id"}]},
        {"displayName": "x", "members": [{"value": "999999"}]},
        {"displayName": "x", "members": [{"value": "9" * 400}]},
        {"displayName": "x", "members": [{}]},
    ],
)
def test_wrong_groups_are_refused(directory, body):
    answer = directory.send("post", "Groups", body)

    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidValue")
    assert not DirectoryGroup.objects.exists()


def test_person_outside_of_the_directory_can_not_be_a_member(directory, admin):
    answer = directory.send(
        "post", "Groups", {"displayName": "admin", "members": [{"value": str(admin.pk)}]}
    )

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        ('displayName eq "PAY"', "pay"),
        ('displayName co "a"', "pay search"),
        ('externalId eq "g1"', "pay"),
        ('members eq "{kim}"', "pay"),
        ('members.value eq "{kim}" or members.value eq "{pat}"', "pay"),
        ('members[value eq "{kim}"]', "pay"),
        ('id eq "{pay}" and members eq "{pat}"', "pay"),
        ('not (members eq "{kim}")', "search"),
        ('members eq "x"', ""),
    ],
)
def test_groups_are_filtered(directory, kim, pat, filter_, found):
    pay = directory.group("pay", kim["id"], pat["id"], externalId="g1")
    search = directory.group("search")
    for name, one in {"kim": kim, "pat": pat, "pay": pay}.items():
        filter_ = filter_.replace(f"{{{name}}}", one["id"])
    names = {pay["id"]: "pay", search["id"]: "search"}

    assert " ".join(names[each] for each in directory.find("Groups", filter_)) == found


def test_members_can_be_left_out(directory, kim):
    group = directory.group("pay", kim["id"])

    shown = directory.get("Groups", excludedAttributes="members")["Resources"]

    assert shown == [{name: group[name] for name in group if name != "members"}]
    assert "members" not in directory.get(f"Groups/{group['id']}", attributes="displayName")


def test_group_of_thousands_takes_few_queries(directory, team, django_assert_max_num_queries):
    now = db_now()
    people = User.objects.bulk_create(User(username=f"person{n}") for n in range(2000))
    DirectoryUser.objects.bulk_create(
        DirectoryUser(
            user=each,
            attributes={"userName": each.username},
            created_at=now,
            changed_at=now,
        )
        for each in people
    )
    groups = [directory.group(name) for name in ("pay", "operator")]
    members = [{"value": str(each.pk)} for each in people]

    for group in groups:
        with django_assert_max_num_queries(60):
            operation = {"op": "add", "path": "members", "value": members}
            assert directory.patch(f"Groups/{group['id']}", operation).status_code == 204
    assert Membership.objects.count() == 2000
    assert User.objects.filter(role="operator").count() == 2000

    with django_assert_max_num_queries(60):
        assert directory.send("delete", f"Groups/{groups[1]['id']}").status_code == 204
    assert not User.objects.filter(role="operator").exists()
    with django_assert_max_num_queries(20):
        assert len(directory.get(f"Groups/{groups[0]['id']}")["members"]) == 2000
