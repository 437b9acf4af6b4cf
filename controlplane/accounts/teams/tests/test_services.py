"""Changes of teams: a second person approves those of authority, and each is audited whole."""

import pytest

from controlplane.accounts.models import (
    AuthorityRule,
    DirectoryGroup,
    DirectoryUser,
    Membership,
    Ownership,
    Team,
    User,
)
from controlplane.accounts.teams import changes, services
from controlplane.accounts.tokens import services as tokens
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.http.tests.callers import person

from .company import REASON, SHELL, make_team


@pytest.fixture
def ada(db):
    return person("admin", "ada")


@pytest.fixture
def bob(db):
    return person("approver", "bob")


@pytest.fixture
def kim(db):
    return person("operator", "kim")


@pytest.fixture
def company(ada, bob):
    return make_team("company", members={"ada": "lead", "bob": "member"})


def change(slug, by, *, seen="", reason=REASON, **wanted):
    return services.change_team(
        slug=slug, wanted=wanted, seen=seen, reason=reason, actor=by.as_actor(), now=db_now()
    )


def approve(request, by):
    return approvals.approve(request.pk, comment="", actor=by.as_actor(), now=db_now())


def test_first_team_waits_for_a_second_person_and_is_audited_whole(ada, bob, kim):
    made = services.create_team(
        slug="company",
        wanted={"name": "Company", "members": {"ada": "lead", "bob": "member"}},
        reason=REASON,
        actor=ada.as_actor(),
        now=db_now(),
    )

    assert not Team.objects.exists()
    assert authority.decide(kim.as_actor(), Action.RELEASE, "global:all").is_allowed
    assert made.approval.summary == "New team Company: add ada (lead), bob (member)"
    approve(made.approval, bob)
    entry = AuditEntry.objects.get(action="team.created")
    assert (entry.target, entry.actor_name, entry.reason) == ("team:company", "bob", REASON)
    assert audit.as_row(entry)["before"] == "null"
    assert services.read_document("company") == {
        "name": "Company",
        "description": "",
        "runbook_url": "",
        "parent": None,
        "member_group": "",
        "lead_group": "",
        "members": {
            "ada": {"role": "lead", "source": "hand"},
            "bob": {"role": "member", "source": "hand"},
        },
        "owns": [],
    }
    assert not authority.decide(kim.as_actor(), Action.RELEASE, "global:all").is_allowed


def test_description_changes_at_once_and_ownership_after_approval(company, ada, bob):
    changed = change("company", ada, description="All of us", owns=["segment:*"])

    company.refresh_from_db()
    assert company.description == "All of us"
    assert not Ownership.objects.exists()
    approve(changed.approval, bob)
    assert Ownership.objects.get().pattern == "segment:*"
    assert AuditEntry.objects.filter(action="team.changed", target="team:company").count() == 2


def test_shell_needs_no_approval(company):
    assert company.memberships.count() == 2
    assert not Approval.objects.exists()


def test_lead_requests_changes_of_own_team_only(company, kim):
    make_team("payments", parent="company", members={"kim": "lead"})
    make_team("search", parent="company")

    change("payments", kim, owns=["segment:finance*"])
    with pytest.raises(Forbidden):
        change("search", kim, owns=["segment:search"])
    with pytest.raises(Forbidden):
        change("payments", kim, parent=None)

    assert Approval.objects.get().target == "team:payments#owns"


def test_member_may_not_request(company, kim):
    make_team("payments", parent="company", members={"kim": "member"})

    with pytest.raises(Forbidden):
        change("payments", kim, name="Ours")


def test_requests_for_parts_of_a_team_wait_side_by_side(company, ada, bob):
    members = change("company", ada, members={"ada": "lead"})
    owns = change("company", ada, owns=["segment:finance"])

    approve(owns.approval, bob)
    approve(members.approval, bob)

    document = services.read_document("company")
    assert (list(document["members"]), document["owns"]) == (["ada"], ["segment:finance"])


def test_request_is_outdated_after_a_change_of_the_same_part(company, ada, bob):
    wanted = change("company", ada, owns=["segment:finance"])
    services.change_team(slug="company", wanted={"owns": ["segment:*"]}, actor=SHELL, now=db_now())

    with pytest.raises(Conflict, match="has changed since"):
        approve(wanted.approval, bob)
    assert [one.pattern for one in Ownership.objects.all()] == ["segment:*"]


def test_group_member_does_not_outdate_a_request_about_others(company, ada, bob, kim):
    wanted = change("company", ada, members={"ada": "lead"})
    Membership.objects.create(team=company, user=kim, source="group")

    approve(wanted.approval, bob)

    assert set(services.read_document("company")["members"]) == {"ada", "kim"}


def test_stale_form_is_refused(company, ada):
    seen = changes.get_revision(services.read_document("company"))
    change("company", ada, name="Firm")

    with pytest.raises(Conflict, match="Someone else"):
        change("company", ada, seen=seen, name="Group")


def test_equal_change_needs_nothing(company, ada):
    same = change("company", ada, owns=[], name="Company")

    assert (same.diff, same.approval) == ({}, None)
    assert AuditEntry.objects.filter(target="team:company").count() == 1


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("owns", ["finance"], "not of the form"),
        ("owns", ["team:x"], "must begin with"),
        ("owns", ["segment:finance"], "Payments owns segment:finance"),
        ("parent", "search", "a team below it"),
        ("parent", "company", "is company itself"),
        ("parent", "nowhere", "no team nowhere"),
        ("members", {"nobody": "member"}, "no person nobody"),
        ("members", {"gone": "member"}, "gone is deactivated"),
        ("members", {"ada": "boss"}, "one of member, lead"),
        ("members", {}, "Nobody could then approve changes of teams"),
        ("name", "PAYMENTS", "already exists"),
        ("name", "", "Enter a name"),
        ("runbook_url", "javascript:alert()", "http://"),
        ("name", "a\u202eb", "control characters"),
    ],
)
def test_wrong_field_is_named(company, ada, field, value, problem):
    User.objects.create_user("gone", role="operator", is_active=False)
    make_team("payments", parent="company", owns=["segment:finance"])
    make_team("search", parent="payments")

    with pytest.raises(InvalidInput) as refused:
        change("company", ada, **{field: value})

    assert problem in " ".join(refused.value.errors[field])
    assert not Approval.objects.exists()


def test_group_that_nobody_is_in_locks_nobody_out(ada, bob):
    now = db_now()
    leads = DirectoryGroup.objects.create(name="leads", created_at=now, changed_at=now)
    for user in (ada, bob):
        DirectoryUser.objects.create(user=user, created_at=now, changed_at=now)
        leads.members.add(user)
    make_team("company", lead_group="leads")

    with pytest.raises(InvalidInput, match="Nobody could then"):
        change("company", ada, lead_group="typo")

    assert not Approval.objects.exists()
    assert Membership.objects.filter(role="lead").count() == 2


def test_first_team_without_an_approver_is_refused(ada, kim):
    with pytest.raises(InvalidInput, match="Add one first"):
        services.create_team(
            slug="company",
            wanted={"name": "Company", "members": {"kim": "member"}},
            reason=REASON,
            actor=ada.as_actor(),
            now=db_now(),
        )


def test_shell_may_lock_everyone_out_and_repair_it(company):
    services.change_team(slug="company", wanted={"members": {}}, actor=SHELL, now=db_now())

    assert authority.who_may(Action.RELEASE, "global:all") == []


def test_authority_changes_need_a_reason(company, ada):
    with pytest.raises(InvalidInput, match="A reason is required"):
        change("company", ada, reason=" ", owns=["segment:x"])


def test_names_in_any_script(company, ada, bob):
    taro = person("operator", "たろう")

    wanted = change("company", ada, name="決済 💳", members={"ada": "lead", "たろう": "lead"})
    approve(wanted.approval, bob)

    assert Membership.objects.get(user=taro).role == "lead"
    assert services.read_document("company")["name"] == "決済 💳"


def test_group_member_is_not_changed_by_hand(company, ada, kim):
    Membership.objects.create(team=company, user=kim, source="group")

    with pytest.raises(InvalidInput, match="kim: a member by a group"):
        services.change_members(
            slug="company", roles={"kim": "lead"}, actor=ada.as_actor(), now=db_now()
        )
    with pytest.raises(InvalidInput, match="kim: a member by a group"):
        change("company", ada, members={"ada": "lead", "kim": "lead"})


def test_changed_group_ends_memberships_by_the_former_one(company, kim):
    services.change_team(slug="company", wanted={"member_group": "all"}, actor=SHELL, now=db_now())
    Membership.objects.create(team=company, user=kim, source="group")

    services.change_team(
        slug="company", wanted={"member_group": "everyone"}, actor=SHELL, now=db_now()
    )

    assert set(services.read_document("company")["members"]) == {"ada", "bob"}


def test_deletion_frees_what_the_team_owned_and_voids_requests(company, ada, bob):
    make_team("payments", parent="company", owns=["segment:finance"])
    change("payments", ada, owns=[])
    request = services.delete_team(
        slug="payments", reason=REASON, actor=ada.as_actor(), now=db_now()
    ).approval

    approve(request, bob)

    assert not Team.objects.filter(slug="payments").exists()
    assert authority.read_teams().owner_of("segment:finance") is None
    entry = AuditEntry.objects.get(action="team.deleted")
    assert (entry.target, entry.after) == ("team:payments", "null")
    assert Approval.objects.get(target="team:payments#owns").state == "void"


def test_team_above_others_or_with_tokens_stays(company, ada):
    payments = make_team("payments", parent="company")
    with pytest.raises(Conflict, match="Payments: below this team"):
        services.delete_team(slug="company", reason=REASON, actor=ada.as_actor(), now=db_now())

    token, _ = tokens.create_token(
        name="ci", owner=ada, scopes=["switches:read"], actor=SHELL, now=db_now()
    )
    token.team = payments
    token.save()
    with pytest.raises(Conflict, match="ci: tokens of this team"):
        services.delete_team(slug="payments", actor=SHELL, now=db_now())

    token.revoked_at = db_now()
    token.save()
    services.delete_team(slug="payments", actor=SHELL, now=db_now())
    assert not Team.objects.filter(slug="payments").exists()


def test_last_team_can_be_deleted_and_roles_decide_again(company, ada, bob, kim):
    request = services.delete_team(
        slug="company", reason=REASON, actor=ada.as_actor(), now=db_now()
    ).approval
    approve(request, bob)

    assert authority.decide(kim.as_actor(), Action.RELEASE, "global:all").is_allowed


@pytest.mark.parametrize("wanted", [{"owns": ["segment:a"]}, {"owns": [], "description": "Money"}])
def test_rule_can_leave_the_approval_of_changes_to_the_owner(company, ada, bob, wanted):
    make_team("payments", owns=["feature:b"], parent="company")
    AuthorityRule.objects.create(action="approve", kind="team", relation="owner", role="approver")
    stranger = person("approver", "sue")
    request = change("payments", ada, **wanted).approval

    with pytest.raises(Forbidden):
        approve(request, stranger)
    approve(request, bob)

    assert services.read_document("payments")["owns"] == wanted["owns"]


def test_rule_leaves_the_approval_of_a_new_team_to_the_one_above(company, ada, bob):
    AuthorityRule.objects.create(action="approve", kind="team", relation="owner", role="approver")
    request = services.create_team(
        slug="payments",
        wanted={"name": "Payments", "parent": "company"},
        reason=REASON,
        actor=ada.as_actor(),
        now=db_now(),
    ).approval

    with pytest.raises(Forbidden):
        approve(request, person("approver", "sue"))
    approve(request, bob)

    assert Team.objects.filter(slug="payments").exists()
