"""History of authority: who could do what, from the audit trail alone."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from controlplane.accounts.models.teams import Membership, Ownership, Team
from controlplane.accounts.people import services as people
from controlplane.accounts.people.authority import grant_target
from controlplane.accounts.teams import rules, services
from controlplane.accounts.teams.past_state import AuthorityEntry, PastState
from controlplane.accounts.tokens import services as tokens
from controlplane.core import authority
from controlplane.core.actions import Action, Relation
from controlplane.core.actors import system_actor
from controlplane.core.approvals import announcements
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.authority import Period
from controlplane.core.roles import Role

pytestmark = pytest.mark.django_db

DAY = datetime(2026, 3, 2, tzinfo=UTC)
BEFORE, NOON, AFTER = DAY - timedelta(days=9), DAY + timedelta(hours=12), DAY + timedelta(days=1)
WHOLE, HOUR = Period(DAY, AFTER), timedelta(hours=1)
SHELL = system_actor("shell:root")
FINANCE = "segment:finance"
PEOPLE = ("kim", "lee", "pat")


def add_people(**roles):
    for name, role in roles.items():
        people.create_user(username=name, password=None, role=role, actor=SHELL, now=BEFORE)


def add_team(slug, at=BEFORE, **wanted):
    fields = {"name": slug.capitalize(), **wanted}
    services.create_team(slug=slug, wanted=fields, actor=SHELL, now=at)


def holders(action=Action.RELEASE, resource=FINANCE, period=WHOLE):
    """The periods by name and reason."""
    found = authority.read_history(action, resource, period).holders
    return {(one.name, one.because): list(one.periods) for one in found}


@pytest.fixture
def company():
    add_people(rita="approver", pat="operator", lee="operator", sam="approver", vic="viewer")
    add_team("operations", members={"rita": "member"})
    add_team(
        "payments",
        parent="operations",
        members={"pat": "member", "lee": "lead", "vic": "member"},
        owns=["segment:fin*"],
    )
    add_team("search", parent="operations", members={"sam": "member"})


def test_without_teams_the_role_alone_decided():
    add_people(pat="operator", vic="viewer")

    history = authority.read_history(Action.RELEASE, FINANCE, WHOLE)

    assert [(one.name, one.because) for one in history.holders] == [("pat", "operator")]
    assert history.begins_at == BEFORE
    assert history.rules[0].owner is None


def test_of_times_before_the_trail_nothing_is_said():
    add_people(pat="operator")
    earlier = DAY - timedelta(days=20)

    day = authority.read_history(Action.RELEASE, FINANCE, Period(earlier, earlier + HOUR))
    span = authority.read_history(Action.RELEASE, FINANCE, Period(earlier, AFTER))

    assert (day.rules, day.holders) == ((), ())
    assert [one.period for one in span.rules] == [Period(BEFORE, AFTER)]


def test_members_and_those_of_teams_above_could(company):
    assert holders() == {
        ("lee", "operator, lead of Payments"): [WHOLE],
        ("pat", "operator, member of Payments"): [WHOLE],
        ("rita", "approver, member of Operations"): [WHOLE],
    }
    assert set(holders(Action.RELEASE_AT_ONCE)) == {
        ("lee", "operator, lead of Payments"),
        ("rita", "approver, member of Operations"),
    }
    assert {name for name, _because in holders(Action.ENGAGE)} == {"lee", "pat", "rita", "sam"}


def test_the_present_state_is_not_read(company):
    Membership.objects.all().delete()
    Ownership.objects.all().delete()

    assert ("pat", "operator, member of Payments") in holders()


def test_a_member_of_a_morning_could_until_noon(company):
    services.change_members(slug="payments", roles={"pat": None}, actor=SHELL, now=NOON)
    services.change_members(slug="payments", roles={"sam": "member"}, actor=SHELL, now=NOON)

    found = holders()

    assert found["pat", "operator, member of Payments"] == [Period(DAY, NOON)]
    assert found["sam", "approver, member of Payments"] == [Period(NOON, AFTER)]
    assert found["lee", "operator, lead of Payments"] == [WHOLE]
    assert ("pat", "operator, member of Payments") not in holders(period=Period(NOON, AFTER))


def test_who_left_and_came_back_has_two_periods(company):
    leave, back = DAY + timedelta(hours=1), DAY + timedelta(hours=2)
    services.change_members(slug="payments", roles={"pat": None}, actor=SHELL, now=leave)
    services.change_members(slug="payments", roles={"pat": "member"}, actor=SHELL, now=back)

    assert holders()["pat", "operator, member of Payments"] == [
        Period(DAY, leave),
        Period(back, AFTER),
    ]


def test_changes_of_people_count(company):
    pat, lee = (people.User.objects.get(username=name) for name in ("pat", "lee"))
    people.change_user(user=pat, actor=SHELL, now=NOON, role="viewer")
    people.change_user(user=lee, actor=SHELL, now=NOON, is_active=False)

    found = holders()

    assert found["pat", "operator, member of Payments"] == [Period(DAY, NOON)]
    assert found["lee", "operator, lead of Payments"] == [Period(DAY, NOON)]


def test_a_pattern_that_moved_moves_the_right(company):
    services.change_team(slug="payments", wanted={"owns": []}, actor=SHELL, now=NOON)
    services.change_team(slug="search", wanted={"owns": ["segment:fin*"]}, actor=SHELL, now=NOON)

    history = authority.read_history(Action.RELEASE, FINANCE, WHOLE)

    assert [(rule.owner.slug, rule.period) for rule in history.rules] == [
        ("payments", Period(DAY, NOON)),
        ("search", Period(NOON, AFTER)),
    ]
    assert holders()["sam", "approver, member of Search"] == [Period(NOON, AFTER)]


def test_a_deleted_team_owned_until_then(company):
    services.delete_team(slug="payments", actor=SHELL, now=NOON)

    assert holders()["pat", "operator"] == [Period(NOON, AFTER)]
    assert holders()["pat", "operator, member of Payments"] == [Period(DAY, NOON)]


def test_a_rule_counts_while_it_was_stored(company):
    change = {"action": "release", "kind": "segment", "actor": SHELL}
    wanted = {"relation": "owner", "role": "approver"}
    rules.change_rule(**change, wanted=wanted, now=BEFORE)
    rules.change_rule(**change, wanted=None, now=NOON)

    history = authority.read_history(Action.RELEASE, FINANCE, WHOLE)

    assert [rule.requirement.role for rule in history.rules] == [Role.APPROVER, Role.OPERATOR]
    assert history.rules[0].requirement.relation == Relation.OWNER
    assert holders()["pat", "operator, member of Payments"] == [Period(NOON, AFTER)]
    assert holders()["lee", "operator, lead of Payments"] == [WHOLE]


def test_tokens_are_listed_with_whom_they_act_for(company):
    pat = people.User.objects.get(username="pat")
    common = {"owner": pat, "actor": SHELL, "now": BEFORE}
    release, _text = tokens.create_token(name="ci", scopes=["switches:write"], **common)
    tokens.create_token(name="reader", scopes=["switches:read"], **common)
    tokens.create_token(name="letters", scopes=["dlq:write"], **common)
    tokens.create_token(
        name="short", scopes=["switches:write"], lifetime=timedelta(days=1), **common
    )
    lifetime = NOON - BEFORE
    noon, _text = tokens.create_token(
        name="noon", scopes=["switches:write"], lifetime=lifetime, **common
    )
    tokens.revoke_token(token=release, actor=SHELL, now=NOON)

    found = {key: periods for key, periods in holders().items() if "sg_" in key[0]}

    because = "token of pat: operator, member of Payments"
    assert found == {
        (f"ci (sg_{release.prefix}_…)", because): [Period(DAY, NOON)],
        (f"noon (sg_{noon.prefix}_…)", because): [Period(DAY, NOON)],
    }


def test_a_token_of_a_team_acts_for_it_whoever_owned_it(company):
    pat = people.User.objects.get(username="pat")
    token, _text = tokens.create_token(
        name="ci",
        owner=pat,
        scopes=["switches:write"],
        actor=SHELL,
        now=BEFORE,
        team=Team.objects.get(slug="payments"),
        patterns=["experiment:*", "segment:fin*"],
    )
    people.change_user(user=pat, actor=SHELL, now=BEFORE, is_active=False)
    name, because = f"ci (sg_{token.prefix}_…)", "operator, member of Payments"

    assert holders()[name, f"token of payments: {because}"] == [WHOLE]
    assert name not in {one for one, _because in holders(resource="feature:export")}
    assert name not in {one for one, _because in holders(resource="segment:other")}


def test_a_token_that_left_its_team_acts_for_its_owner(company):
    pat, sam = (people.User.objects.get(username=name) for name in ("pat", "sam"))
    team = Team.objects.get(slug="payments")
    common = {"scopes": ["switches:write"], "actor": SHELL, "now": BEFORE, "owner": pat}
    token, _text = tokens.create_token(name="ci", team=team, **common)
    tokens.hand_over_token(token=token, owner=sam, actor=SHELL, now=NOON)

    name = f"ci (sg_{token.prefix}_…)"

    assert [key for key in holders(period=Period(NOON, AFTER)) if key[0] == name] == []
    assert holders()[name, "token of payments: operator, member of Payments"] == [Period(DAY, NOON)]


@pytest.mark.parametrize(
    ("scope", "actions"),
    [
        ("switches:write", {"engage", "extend", "edit", "release"}),
        ("ramps:write", {"engage", "release"}),
        ("switches:trip", {"engage"}),
        ("switches:emergency", {"engage"}),
        ("breakers:write", set()),
    ],
)
def test_tokens_could_what_their_scope_allows(company, scope, actions):
    pat = people.User.objects.get(username="pat")
    tokens.create_token(name="ci", owner=pat, scopes=[scope], actor=SHELL, now=BEFORE)

    found = {
        action.value
        for action in (Action.ENGAGE, Action.EXTEND, Action.EDIT, Action.RELEASE, Action.APPROVE)
        if any("sg_" in name for name, _because in holders(action))
    }

    assert found == actions


def grant_to_sam(*actions, **asked_by):
    sam, rita = (people.User.objects.get(username=name).as_actor() for name in ("sam", "rita"))
    for action in actions:
        asked = approvals.request_approval(
            kind=Approval.Kind.GRANT,
            target=grant_target(action, FINANCE, sam.user_id),
            summary="Let sam do it for an hour",
            diff={"action": action.value, "resource": FINANCE, "person": "sam"},
            reason="vendor says it is mended, queue empty",
            actor=replace(sam, **asked_by),
            now=NOON,
        )
        with transaction.atomic():
            announcements.record_decision(asked, Approval.State.APPROVED, "", rita, NOON)
            announcements.announce_decision(asked, rita, NOON)


def test_a_granted_permission_counts_for_an_hour(company):
    grant_to_sam(Action.RELEASE, Action.OVERRIDE)
    # A change in between doesn't split the period.
    services.change_team(
        slug="search", wanted={"description": "-"}, actor=SHELL, now=NOON + timedelta(minutes=5)
    )

    assert holders()["sam", "granted on request, for an hour"] == [
        Period(NOON, NOON + timedelta(hours=1))
    ]
    assert ("sam", "granted on request, for an hour") not in holders(resource="segment:other")


def test_a_granted_permission_is_the_persons_although_a_token_edited_the_request(company):
    sam = people.User.objects.get(username="sam")
    scopes = frozenset({"switches:write"})
    token, _ = tokens.create_token(name="ci", owner=sam, scopes=scopes, actor=SHELL, now=NOON)

    grant_to_sam(Action.RELEASE, type="token", name="ci", token_id=token.pk, scopes=scopes)

    assert ("sam", "granted on request, for an hour") in holders()


@pytest.mark.parametrize("change", [{"is_active": False}, {"role": "viewer"}])
def test_a_granted_permission_ends_with_the_right_to_ask_for_it(company, change):
    grant_to_sam(Action.RELEASE)
    later = NOON + timedelta(minutes=20)
    sam = people.User.objects.get(username="sam")
    people.change_user(user=sam, actor=SHELL, now=later, **change)

    assert holders()["sam", "granted on request, for an hour"] == [Period(NOON, later)]


@pytest.mark.parametrize("seed", range(20))
def test_decisions_kept_from_before_a_change_are_those_made_anew(seed):
    change = random.Random(seed)
    state, applied = PastState(Action.RELEASE, FINANCE), [team_entry("root", "Root", [], change)]
    state.apply(applied[0])
    state.tokens["1"] = {"owner": "kim", "name": "ci", "scopes": ["switches:write"]}

    for _ in range(60):
        applied.append(make_up(change))
        state.apply(applied[-1])
        fresh = PastState(Action.RELEASE, FINANCE, tokens=dict(state.tokens))
        for one in applied:
            fresh.apply(one)
        assert state.find_holders(NOON) == fresh.find_holders(NOON)


def make_up(change):
    """Return an entry about a person, or about the team `finance` or the one above it."""
    if change.random() < 0.2:
        after = {"role": change.choice(["operator", "viewer"]), "is_active": change.random() < 0.8}
        return AuthorityEntry(NOON, "user.changed", f"user:{change.choice(PEOPLE)}", after)
    if change.random() < 0.3:
        return team_entry("root", "Operations", [], change)
    owns = [FINANCE] if change.random() < 0.9 else []
    parent = change.choice([None, "root"])
    entry = team_entry("finance", "Finance", owns, change, parent=parent)
    return entry if change.random() < 0.95 else replace(entry, after=None)


def team_entry(slug, name, owns, change, parent=None):
    members = {name: {"role": change.choice(["member", "lead"])} for name in PEOPLE}
    members = {name: one for name, one in members.items() if change.random() < 0.6}
    after = {"name": name, "parent": parent, "owns": owns, "members": members}
    return AuthorityEntry(NOON, "team.changed", f"team:{slug}", after)


def test_a_day_before_the_trail_has_nobody():
    add_people(pat="operator")
    earlier = Period(BEFORE - timedelta(days=2), BEFORE - timedelta(days=1))

    history = authority.read_history(Action.RELEASE, FINANCE, earlier)

    assert history.holders == ()
    assert history.begins_at == BEFORE
