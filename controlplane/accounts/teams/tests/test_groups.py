"""Memberships that follow groups: given and taken away, audited, and apart from those by hand."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from controlplane.accounts.models import DirectoryGroup, DirectoryUser, Membership, Team
from controlplane.accounts.teams import groups, storage
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.http.tests.sessions import until_waiting

ACTOR = system_actor("single-sign-on")


def make_team(slug="payments", member_group="pay", lead_group="pay-leads", **more):
    return Team.objects.create(
        slug=slug,
        name=slug.title(),
        member_group=member_group,
        lead_group=lead_group,
        created_at=db_now(),
        **more,
    )


def apply(user, *names):
    return groups.apply_groups(user, names, actor=ACTOR, now=db_now())


def memberships():
    return set(Membership.objects.values_list("user__username", "team__slug", "role", "source"))


@pytest.mark.parametrize(
    ("names", "role"),
    [
        (["pay"], "member"),
        (["pay-leads"], "lead"),
        (["pay", "pay-leads"], "lead"),
        (["PAY"], None),
        ([""], None),
        (["pay "], None),
    ],
)
def test_person_has_the_memberships_of_their_groups(db, names, role):
    make_team()
    make_team(slug="without", member_group="", lead_group="")

    apply(person("operator", "kim"), *names)

    assert memberships() == ({("kim", "payments", role, "group")} if role else set())


def test_membership_ends_with_the_group_and_follows_it(db):
    make_team()
    kim, pat = person("operator", "kim"), person("operator", "pat")
    apply(kim, "pay-leads")
    apply(pat, "pay")

    assert apply(kim, "pay") == ["payments"]
    assert memberships() == {
        ("kim", "payments", "member", "group"),
        ("pat", "payments", "member", "group"),
    }
    assert apply(kim) == ["payments"]
    assert memberships() == {("pat", "payments", "member", "group")}


def test_memberships_made_by_hand_stay(db):
    by_hand, mapped = make_team("hand", "", ""), make_team()
    kim = person("operator", "kim")
    for team in (by_hand, mapped):
        Membership.objects.create(team=team, user=kim)

    assert apply(kim, "pay-leads") == []
    assert apply(kim) == []
    assert memberships() == {
        ("kim", "hand", "member", "hand"),
        ("kim", "payments", "member", "hand"),
    }


def test_audit_has_the_whole_team_before_and_after_and_only_if_it_changed(db):
    make_team(description="Cards", parent=make_team("company", "", ""))
    make_team("other", "other", "")
    kim = person("operator", "kim")

    apply(kim, "pay")
    apply(kim, "pay")

    (entry,) = AuditEntry.objects.filter(action="team.changed")
    assert entry.target == "team:payments"
    assert entry.actor_name == "single-sign-on"
    team = {
        "name": "Payments",
        "description": "Cards",
        "runbook_url": "",
        "parent": "company",
        "member_group": "pay",
        "lead_group": "pay-leads",
        "members": {},
        "owns": [],
    }
    assert json.loads(entry.before) == team
    assert json.loads(entry.after) == {
        **team,
        "members": {"kim": {"role": "member", "source": "group"}},
    }


def test_groups_that_scim_sent_apply_by_name_or_external_id(db):
    make_team("payments", "pay", "")
    make_team("search", "7f3a", "")
    now = db_now()
    kim, pat = person("operator", "kim"), person("operator", "pat")
    DirectoryUser.objects.create(user=kim, created_at=now, changed_at=now)
    for name, external_id in (("pay", ""), ("Search people", "7f3a")):
        group = DirectoryGroup.objects.create(
            name=name, external_id=external_id, created_at=now, changed_at=now
        )
        group.members.add(kim)

    assert groups.apply_directory_groups(actor=ACTOR, now=now) == ["payments", "search"]
    assert set(groups.choose_groups(kim, ["stale"])) == {"pay", "Search people", "7f3a"}
    assert groups.choose_groups(pat, ["claimed"]) == ["claimed"]


@pytest.mark.django_db(transaction=True)
def test_changes_of_the_same_team_at_once_wait_for_each_other():
    make_team()
    kim, pat = person("operator", "kim"), person("operator", "pat")

    def add(user):
        try:
            apply(user, "pay")
        finally:
            connection.close()

    with ThreadPoolExecutor() as threads:
        with transaction.atomic():
            storage.lock_teams(to_change=True)
            adding = [threads.submit(add, user) for user in (kim, pat, pat)]
            until_waiting(3)
        for each in adding:
            each.result()

    assert len(memberships()) == 2
    sizes = [len(json.loads(entry.after)["members"]) for entry in AuditEntry.objects.order_by("id")]
    assert sizes == [1, 2]
