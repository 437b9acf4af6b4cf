"""Tokens of teams: they act for the team, within patterns, and outlive their owner's account."""

import json
import re

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from rest_framework.request import Request

from controlplane.accounts.authentication.rest import TokenAuthentication
from controlplane.accounts.models import Membership, Ownership, Team, Token
from controlplane.accounts.people import deactivation
from controlplane.accounts.tokens import services
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden, InvalidInput, Unauthenticated
from controlplane.core.http import permissions
from controlplane.core.http.middleware import RequestContextMiddleware
from controlplane.core.http.tests.callers import Api, as_role, browser_of, person
from controlplane.core.roles import Role

pytestmark = pytest.mark.django_db
ACTOR = system_actor("test")
CI = {"name": "ci", "scopes": ["switches:read", "switches:write"]}


@pytest.fixture
def team():
    team = Team.objects.create(slug="payments", name="Payments", created_at=db_now())
    Ownership.objects.create(pattern="experiment:pay-*", team=team)
    return team


def token_of(team, owner=None, scopes=("switches:read", "switches:write"), **more):
    owner = owner or person("admin", "root")
    arguments = {"name": "ci", "owner": owner, "scopes": scopes, "actor": ACTOR, "now": db_now()}
    return services.create_token(team=team, **{**arguments, **more})


def actor_of(token):
    known = services.to_known_token(token)
    return Actor(
        type="token",
        name=known.name,
        user_id=known.owner_id,
        token_id=known.token_id,
        role=known.role,
        scopes=known.scopes,
        team=known.team,
        patterns=known.patterns,
        only_owned=known.only_owned,
    )


def may(token, resource, action=Action.RELEASE):
    return authority.decide(actor_of(token), action, resource).is_allowed


def test_team_token_outlives_its_owners_account(team):
    kim = person("operator", "kim")
    person("admin", "root")
    _, of_team = token_of(team, kim)
    _, own = token_of(None, kim)

    deactivation.deactivate_user(user=kim, heir=None, actor=ACTOR, now=db_now())

    assert services.authenticate_token(of_team).team == team
    with pytest.raises(Unauthenticated):
        services.authenticate_token(own)


def test_heir_of_a_person_gets_no_tokens_of_teams(team):
    kim, heir = person("operator", "kim"), person("operator", "heir")
    of_team, _ = token_of(team, kim)
    own, _ = token_of(None, kim)

    shown = deactivation.preview_deactivation(kim, db_now())
    deactivation.deactivate_user(user=kim, heir=heir, actor=ACTOR, now=db_now())

    assert [one.pk for one in shown.tokens] == [own.pk]
    assert Token.objects.get(pk=own.pk).owner == heir
    of_team.refresh_from_db()
    assert (of_team.owner, of_team.team) == (kim, team)


def test_team_token_is_an_operator_and_a_member_of_the_team(team):
    token, _ = token_of(team)
    personal, _ = token_of(None, token.owner)

    assert token.role == Role.OPERATOR
    assert may(token, "experiment:pay-new")
    assert not may(token, "experiment:pay-new", Action.RELEASE_AT_ONCE)
    assert not may(personal, "experiment:pay-new")


def test_team_token_has_no_scopes_of_admins(team):
    with pytest.raises(InvalidInput, match="like any team, may not use: config:write"):
        token_of(team, scopes=["config:write"])


def test_patterns_limit_every_action(team):
    token, _ = token_of(team, patterns=["experiment:pay-*"])

    assert may(token, "experiment:pay-new", Action.ENGAGE)
    assert not may(token, "segment:finance", Action.ENGAGE)


def test_only_owned_limits_a_token_to_what_the_team_owns(team):
    token, _ = token_of(team, only_owned=True)

    assert may(token, "experiment:pay-new", Action.ENGAGE)
    assert not may(token, "experiment:other", Action.ENGAGE)


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"patterns": ["finance"]}, "patterns"),
        ({"patterns": ["planet:*"]}, "patterns"),
        ({"patterns": ["segment:" + "a" * 250]}, "patterns"),
        ({"patterns": [f"segment:{n}" for n in range(51)]}, "patterns"),
        ({"patterns": ["segment:a\ud800"]}, "patterns"),
        ({"only_owned": True}, "only_owned"),
    ],
)
def test_invalid_limits_name_their_field(limits, field):
    with pytest.raises(InvalidInput) as refused:
        token_of(None, **limits)

    assert field in refused.value.errors


def test_owner_in_a_team_may_have_a_token_for_what_it_owns(team):
    kim = person("operator", "kim")
    Membership.objects.create(team=team, user=kim)

    token, _ = token_of(None, kim, only_owned=True)

    assert may(token, "experiment:pay-new")
    assert not may(token, "experiment:other")


def test_token_that_left_its_team_ends_what_it_began(team):
    token, _ = token_of(team)
    began = actor_of(token)
    authority.require_still([began])

    services.hand_over_token(token=token, owner=token.owner, actor=ACTOR, now=db_now())

    with pytest.raises(Forbidden):
        audit.record(actor=began, action="test.done", target="x", now=db_now())


def test_api_creates_a_limited_token_of_a_team(team):
    admin = as_role("admin")
    limits = {"team": "payments", "patterns": ["experiment:pay-*"], "only_owned": True}

    made = admin.post("/tokens/", {**CI, **limits}).json()

    assert {name: made[name] for name in limits} == limits
    ci = Api(x_api_key=made["token"])
    assert ci.get("/switches/").status_code == 200
    after = json.loads(AuditEntry.objects.get(action="token.created").after)
    assert {name: after[name] for name in limits} == limits


def test_api_refuses_an_unknown_team(team):
    response = as_role("admin").post("/tokens/", {**CI, "team": "nobody"})

    assert response.status_code == 400
    assert response.json()["errors"] == {"team": ["There is no team nobody."]}


def test_api_hands_a_token_over_to_a_team_and_back(team):
    admin = as_role("admin")
    token_id = admin.post("/tokens/", CI).json()["id"]

    given = admin.post(f"/tokens/{token_id}/hand-over", {"team": "payments"}).json()
    back = admin.post(f"/tokens/{token_id}/hand-over", {"owner": "a-admin"}).json()

    assert (given["team"], given["owner"]) == ("payments", "a-admin")
    assert (back["team"], back["owner"]) == (None, "a-admin")
    assert admin.post(f"/tokens/{token_id}/hand-over", {}).status_code == 400
    rows = AuditEntry.objects.filter(action="token.handed_over").order_by("id")
    assert [json.loads(row.after).get("team") for row in rows] == ["payments", None]


def test_token_with_scopes_of_admins_goes_to_no_team(team):
    admin = as_role("admin")
    token_id = admin.post("/tokens/", {**CI, "scopes": ["relay"]}).json()["id"]

    response = admin.post(f"/tokens/{token_id}/hand-over", {"team": "payments"})

    assert response.status_code == 400
    assert Token.objects.get().team is None


def test_pages_create_show_and_transfer_a_team_token(team):
    admin = person("admin", "root")
    browser = browser_of(admin)
    assert "Payments" in browser.get("/tokens/new/").content.decode()
    form = {"name": "ci", "scopes": ["switches:read"], "days": "90", "owner": admin.pk}
    limits = {"team": team.pk, "patterns": "experiment:pay-* segment:a", "only_owned": "on"}

    browser.post("/tokens/new/", {**form, **limits})

    token = Token.objects.get()
    assert (token.team, token.patterns) == (team, ["experiment:pay-*", "segment:a"])
    text = re.sub(r"<[^>]+>|\s+", " ", browser.get("/tokens/").content.decode())
    shown = " ".join(text.split())
    assert (
        "May change only experiment:pay-* , segment:a , and of these only what its teams own"
        in (shown)
    )
    browser.post(f"/tokens/{token.pk}/hand-over/", {"owner": admin.pk})
    token.refresh_from_db()
    assert token.team == team, "it would be limited to what nobody owns"


def test_page_wants_an_owner_or_a_team(team):
    admin = person("admin", "root")
    token, _ = token_of(None, admin)
    person("admin", "pat")

    response = browser_of(admin).post(f"/tokens/{token.pk}/hand-over/", {})

    assert response.status_code == 422
    assert "Choose the new owner, or a team." in response.content.decode()


def test_command_creates_and_lists_tokens_of_teams(team, capsys):
    person("admin", "root")
    limits = ("--team", "payments", "--patterns", "experiment:pay-*", "--only-owned")

    call_command("token", "create", "ci", "--scopes", "switches:trip", *limits)
    text = capsys.readouterr().out.strip().splitlines()[-1]
    call_command("token", "list")

    assert services.authenticate_token(text).only_owned
    listed = capsys.readouterr().out
    assert "team:payments" in listed
    assert "only for experiment:pay-*,what it owns" in listed


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_request_acts_with_the_tokens_team_and_limits(team, rf, method):
    _, text = token_of(team, patterns=["experiment:pay-*"], only_owned=True)
    request = rf.generic(method, "/api/v1/switches/", headers={"X-API-Key": text})
    RequestContextMiddleware(lambda _request: HttpResponse())(request)

    TokenAuthentication().authenticate(Request(request))

    actor = permissions.actor_of(request)
    assert (actor.team, actor.role) == ("payments", Role.OPERATOR)
    assert (actor.patterns, actor.only_owned) == ({"experiment:pay-*"}, True)
