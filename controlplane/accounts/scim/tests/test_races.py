"""Requests at the same time: each change counts once, none is lost, and none deadlocks."""

import pytest

from controlplane.accounts.models import DirectoryGroup, DirectoryUser, Membership, Team
from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.accounts.scim.tests.caller import account
from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import at_once, person

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_those_who_create_the_same_user_at_once_one_does(directory):
    answers = at_once(*[lambda: directory.send("post", "Users", {"userName": "o'brien"})] * 4)

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    assert DirectoryUser.objects.count() == 1


def test_same_patch_twice_at_once_changes_once(directory):
    kim, group = directory.user("kim"), directory.group("operator")
    add = {"op": "add", "path": "members", "value": [{"value": kim["id"]}]}

    answers = at_once(*[lambda: directory.patch(f"Groups/{group['id']}", add)] * 4)

    assert {answer.status_code for answer in answers} == {204}
    assert AuditEntry.objects.filter(action="group.changed").count() == 1
    assert account(kim).role == "operator"


def test_members_added_to_groups_at_once_are_all_there(directory):
    now = db_now()
    for name in ("pay", "operator"):
        Team.objects.create(slug=name, name=name, member_group=name, created_at=now)
    groups = [directory.group("pay"), directory.group("operator")]
    people_ = [directory.user(f"person{number}")["id"] for number in range(4)]

    def add(group, user_id):
        operation = {"op": "add", "path": "members", "value": [{"value": user_id}]}
        return lambda: directory.patch(f"Groups/{group['id']}", operation)

    answers = at_once(*[add(group, user_id) for group in groups for user_id in people_])

    assert {answer.status_code for answer in answers} == {204}
    assert Membership.objects.count() == 8
    assert User.objects.filter(role="operator").count() == 4
    assert audit.verify().intact


def test_only_one_of_two_changes_of_the_same_version_counts(directory):
    group = directory.group("pay")
    version = group["meta"]["version"]

    def rename(name):
        operation = {"op": "replace", "path": "displayName", "value": name}
        return lambda: directory.patch(f"Groups/{group['id']}", operation, if_match=version)

    answers = at_once(rename("a"), rename("b"), rename("c"))

    assert sorted(answer.status_code for answer in answers) == [204, 412, 412]


def test_admins_demoted_from_different_sides_at_once_leave_one(directory, admin):
    ada = person("admin", "ada")
    directory.user("root")
    group = directory.group("admin", str(admin.pk))
    actor = system_actor("test")

    def demote():
        try:
            people.change_user(user=ada, actor=actor, now=db_now(), role="viewer")
        except people.Conflict:
            return False
        return True

    at_once(demote, lambda: directory.send("delete", f"Groups/{group['id']}"))

    assert User.objects.filter(role="admin", is_active=True).count() == 1


def test_people_changed_by_groups_and_by_hand_at_once_do_not_deadlock(directory):
    users = [directory.user(f"person{number}") for number in range(6)]
    group = directory.group("operator")
    members = [{"value": user["id"]} for user in users]
    add = {"op": "add", "path": "members", "value": members}
    actor = system_actor("test")

    def change(user):
        return lambda: people.change_user(
            user=account(user), actor=actor, now=db_now(), display_name="Kim"
        )

    at_once(
        lambda: directory.patch(f"Groups/{group['id']}", add),
        *[change(user) for user in reversed(users)],
    )

    assert User.objects.filter(role="operator", display_name="Kim").count() == 6
    assert DirectoryGroup.objects.get().members.count() == 6
