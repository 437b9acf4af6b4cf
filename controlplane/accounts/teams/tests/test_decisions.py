"""Decisions by the rules alone."""

import pytest

from controlplane.accounts.teams.state import Member, TeamState
from controlplane.core.actions import Action, Relation, Requirement
from controlplane.core.actors import Actor, system_actor
from controlplane.core.roles import Role

OPERATOR, APPROVER, ADMIN, VIEWER = Role.OPERATOR, Role.APPROVER, Role.ADMIN, Role.VIEWER
PEOPLE = {
    1: Member("rita", APPROVER, {"root": "member"}),
    2: Member("pat", OPERATOR, {"payments": "member"}),
    3: Member("lee", OPERATOR, {"payments": "lead", "search": "lead"}),
    4: Member("sam", APPROVER, {"search": "member"}),
    5: Member("vic", VIEWER, {"payments": "lead"}),
}
TEAMS = TeamState(
    names={"root": "Operations", "payments": "Payments", "search": "Search"},
    parents={"root": "", "payments": "root", "search": "root"},
    members=PEOPLE,
    patterns=[("segment:fin*", "payments"), ("segment:finder", "search"), ("stream:*", "payments")],
)
ALONE = TeamState()


def actor(user_id, role=None, **more):
    role = role or PEOPLE[user_id].role
    return Actor(type="user", name=f"user{user_id}", user_id=user_id, role=role, **more)


def token(user_id=2, role=OPERATOR, **more):
    return Actor(type="token", name="ci", user_id=user_id, token_id=1, role=role, **more)


@pytest.mark.parametrize(
    ("who", "action", "resource", "allowed"),
    [
        # Anyone on call may stop anything.
        (actor(4), Action.ENGAGE, "segment:finance", True),
        (actor(2), Action.ENGAGE, "global:all", True),
        (actor(5), Action.ENGAGE, "segment:finance", False),
        (actor(4), Action.EXTEND, "segment:finance", True),
        # Starting again belongs to the owner, and to the teams above.
        (actor(2), Action.RELEASE, "segment:finance", True),
        (actor(4), Action.RELEASE, "segment:finance", False),
        (actor(4), Action.RELEASE, "segment:finder", True),
        (actor(2), Action.RELEASE, "segment:finder", False),
        (actor(1), Action.RELEASE, "segment:finance", True),
        (actor(9, OPERATOR), Action.RELEASE, "segment:finance", False),
        (actor(9, ADMIN), Action.RELEASE, "segment:finance", False),
        # A lead has the role approver in their team alone; a viewer gets nothing.
        (actor(3), Action.RELEASE_AT_ONCE, "segment:finance", True),
        (actor(2), Action.RELEASE_AT_ONCE, "segment:finance", False),
        (actor(3), Action.APPROVE, "segment:finance", True),
        (actor(3), Action.APPROVE, "feature:nobodys", False),
        (actor(4), Action.APPROVE, "segment:finance", False),
        (actor(5), Action.RELEASE, "segment:finance", False),
        # What nobody owns is up to the role.
        (actor(9, OPERATOR), Action.RELEASE, "feature:nobodys", True),
        (actor(9, APPROVER), Action.APPROVE, "feature:nobodys", True),
        # The global switch belongs to the root.
        (actor(1), Action.APPROVE, "global:all", True),
        (actor(4), Action.APPROVE, "global:all", False),
        (actor(3), Action.RELEASE, "global:all", False),
        (actor(9, ADMIN), Action.EDIT, "service:core", True),
        (actor(3), Action.EDIT, "service:core", False),
        (actor(3), Action.EDIT, "team:payments", True),
        (actor(2), Action.EDIT, "team:payments", False),
        (actor(9, ADMIN), Action.EDIT, "team:payments", True),
        (token(), Action.REPLAY, "stream:orders", True),
        (token(user_id=4), Action.REPLAY, "stream:orders", False),
        (token(user_id=9, team="payments"), Action.REPLAY, "stream:orders", True),
        (token(user_id=1, role=APPROVER), Action.APPROVE, "global:all", False),
        (token(patterns=frozenset({"experiment:*"})), Action.ENGAGE, "experiment:a", True),
        (token(patterns=frozenset({"experiment:*"})), Action.ENGAGE, "segment:finance", False),
        (token(only_owned=True), Action.ENGAGE, "segment:finance", True),
        (token(only_owned=True), Action.ENGAGE, "segment:finder", False),
        (token(only_owned=True), Action.ENGAGE, "experiment:nobodys", False),
        (system_actor("ramps"), Action.RELEASE_AT_ONCE, "global:all", True),
    ],
)
def test_decisions(who, action, resource, allowed):
    decision = TEAMS.decide(who, action, resource)

    assert decision.is_allowed is allowed
    assert bool(decision.detail) is not allowed


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("resource", ["global:all", "segment:a", "stream:a", "service:a", "slo:a"])
@pytest.mark.parametrize("role", Role)
def test_without_teams_the_role_alone_decides(action, resource, role):
    least = ALONE.requirement_for(action, resource.partition(":")[0]).role

    allowed = ALONE.decide(actor(9, role), action, resource).is_allowed

    assert allowed is (list(Role).index(role) >= list(Role).index(least))


def test_refusal_says_who_owns_it_and_that_they_can_be_asked():
    refused = TEAMS.decide(actor(4), Action.RELEASE, "segment:finance")

    assert refused.detail == "Payments owns segment:finance. Only its members may release it."
    assert refused.can_ask
    assert TEAMS.who_may(Action.RELEASE, "segment:finance") == ["lee", "pat", "rita"]
    assert TEAMS.who_may(Action.APPROVE, "segment:finance", but=1) == ["lee"]
    assert TEAMS.who_may(Action.RELEASE, "feature:nobodys") is None


def test_a_viewer_is_not_offered_to_ask_because_their_role_would_refuse_it_still():
    refused = TEAMS.decide(actor(9, VIEWER), Action.RELEASE, "segment:finance")

    assert not refused.is_allowed
    assert not refused.can_ask


def test_rule_of_a_kind_goes_before_the_rule_of_all_kinds():
    teams = TeamState(
        names=TEAMS.names,
        parents=TEAMS.parents,
        members=PEOPLE,
        patterns=TEAMS.patterns,
        rules={
            (Action.ENGAGE, ""): Requirement(Relation.OWNER, OPERATOR),
            (Action.ENGAGE, "global"): Requirement(Relation.ROOT, APPROVER),
        },
    )

    assert not teams.decide(actor(4), Action.ENGAGE, "segment:finance").is_allowed
    assert teams.decide(actor(2), Action.ENGAGE, "segment:finance").is_allowed
    assert not teams.decide(actor(2), Action.ENGAGE, "global:all").is_allowed


@pytest.mark.parametrize(
    ("user_id", "wanted", "shown"),
    [
        (2, "mine", {"segment:finance"}),
        (1, "mine", {"segment:finance", "segment:finder"}),
        (9, "mine", {"segment:finance", "segment:finder", "feature:nobodys"}),
        (2, "search", {"segment:finder"}),
        (2, "unowned", {"feature:nobodys"}),
        (2, "", {"segment:finance", "segment:finder", "feature:nobodys"}),
        (2, "no-such-team", {"segment:finance", "segment:finder", "feature:nobodys"}),
    ],
)
def test_filter(user_id, wanted, shown):
    found = TEAMS.filter_for(user_id, wanted)

    resources = {"segment:finance", "segment:finder", "feature:nobodys"}
    assert {one for one in resources if found.includes(one)} == shown
    assert found.includes("global:all")


def test_refused_change_of_a_team_names_the_team_once():
    refused = TEAMS.decide(actor(9, OPERATOR), Action.EDIT, "team:payments")

    assert refused.detail == "team:payments: only members of Payments may edit it."
