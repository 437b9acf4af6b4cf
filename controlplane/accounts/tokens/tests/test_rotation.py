"""Rotation of tokens: a successor with the same rights, and an overlap in which both are valid."""

import json
import re
from datetime import timedelta

import pytest
from django.core.management import call_command

from controlplane.accounts.models import Membership, Team, Token, User
from controlplane.accounts.tokens import rotation, services
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, DomainError, InvalidInput, Unauthenticated
from controlplane.core.http.tests.callers import (
    Api,
    as_role,
    at_once,
    browser_of,
    person,
    signed_in,
)

pytestmark = pytest.mark.django_db
ACTOR = system_actor("test")
DAY = timedelta(days=1)


def create(owner=None, **more):
    arguments = {
        "name": "ci",
        "owner": owner or person("operator", "kim"),
        "scopes": ["switches:read"],
        "actor": ACTOR,
        "now": db_now(),
        "lifetime": 90 * DAY,
    }
    return services.create_token(**{**arguments, **more})


def rotate(token, overlap=DAY, **more):
    arguments = {"actor": ACTOR, "now": db_now(), **more}
    return rotation.rotate_token(token=token, overlap=overlap, **arguments)


@pytest.fixture
def team():
    return Team.objects.create(slug="payments", name="Payments", created_at=db_now())


def test_successor_has_the_same_rights_and_both_are_valid_for_the_overlap(team):
    limits = {"limit_to": ["core"], "patterns": ["segment:pay*"], "only_owned": True, "team": team}
    former, old = create(**limits)

    successor, new = rotate(former)

    assert services.authenticate_token(old).pk == former.pk
    assert services.authenticate_token(new).pk == successor.pk
    same = ("name", "owner_id", "team_id", "scopes", "services", "patterns", "only_owned")
    assert all(getattr(successor, name) == getattr(former, name) for name in same)
    former.refresh_from_db()
    assert abs(former.expires_at - db_now() - DAY) < timedelta(minutes=1)
    assert successor.expires_at - successor.created_at == 90 * DAY


def test_without_overlap_the_former_token_is_out_at_once():
    former, old = create()

    rotate(former, timedelta(0))

    with pytest.raises(Unauthenticated):
        services.authenticate_token(old)


def test_overlap_never_prolongs_a_token():
    former, _ = create(lifetime=timedelta(hours=1))

    successor, _ = rotate(former, lifetime=7 * DAY)

    ends_at = former.expires_at
    former.refresh_from_db()
    assert former.expires_at == ends_at
    assert successor.expires_at - successor.created_at == 7 * DAY


def test_token_without_end_gets_a_successor_without_end():
    former, _ = create(lifetime=None)

    assert rotate(former)[0].expires_at is None


@pytest.mark.parametrize("overlap", [timedelta(days=30, seconds=1), timedelta(seconds=-1)])
def test_overlap_has_limits(overlap):
    with pytest.raises(InvalidInput) as refused:
        rotate(create()[0], overlap)

    assert "overlap" in refused.value.errors


def test_token_that_was_transferred_meanwhile_is_not_rotated(team):
    token, _ = create()
    services.hand_over_token(token=token, owner=token.owner, team=team, actor=ACTOR, now=db_now())

    with pytest.raises(Conflict, match="just transferred"):
        rotate(token)


@pytest.mark.parametrize("ended", ["revoked_at", "expires_at"])
def test_ended_token_is_not_rotated(ended):
    token, _ = create()
    Token.objects.update(**{ended: db_now()})

    with pytest.raises(Conflict, match="has ended"):
        rotate(token)

    assert Token.objects.count() == 1


def test_token_without_active_owner_is_not_rotated_but_a_teams_is(team):
    own, _ = create()
    of_team, _ = create(own.owner, team=team)
    User.objects.update(is_active=False)

    with pytest.raises(Conflict, match="First transfer"):
        rotate(own)

    successor, text = rotate(of_team)
    assert services.authenticate_token(text).team == successor.team


def test_scope_that_the_owners_role_lost_is_not_renewed():
    token, _ = create(scopes=["switches:write"])
    User.objects.update(role="viewer")

    with pytest.raises(InvalidInput, match="may not use"):
        rotate(token)


def test_rotated_token_is_not_rotated_again_until_its_successor_is_revoked():
    token, _ = create()
    successor, _ = rotate(token)
    with pytest.raises(Conflict, match=f"sg_{successor.prefix}_"):
        rotate(token)

    services.revoke_token(token=successor, actor=ACTOR, now=db_now())

    again, _ = rotate(token)
    assert again.replaces == token
    assert again.expires_at - again.created_at == 90 * DAY


def test_only_an_admin_gives_the_successor_a_longer_life():
    kim = person("operator", "kim")
    token, _ = create(kim)
    ada = person("admin", "ada").as_actor()

    with pytest.raises(InvalidInput, match="At most 90 d"):
        rotate(token, lifetime=91 * DAY, actor=kim.as_actor())
    shorter, _ = rotate(token, lifetime=DAY, actor=kim.as_actor())
    longer, _ = rotate(shorter, lifetime=91 * DAY, actor=ada)

    assert longer.expires_at - longer.created_at == 91 * DAY


@pytest.mark.django_db(transaction=True)
def test_of_two_rotations_at_once_one_succeeds():
    token, _ = create()

    def attempt():
        try:
            return rotate(token)[0].prefix
        except DomainError as error:
            return type(error)

    results = at_once(attempt, attempt)

    assert Conflict in results
    assert Token.objects.filter(replaces=token).count() == 1


def test_audit_trail_names_both_tokens_and_no_secret():
    former, _ = create()
    successor, text = rotate(former)

    rotated = AuditEntry.objects.get(action="token.rotated")
    assert rotated.target == f"token:{former.prefix}"
    assert json.loads(rotated.after)["replaced_by"] == successor.prefix
    created = AuditEntry.objects.get(action="token.created", target=f"token:{successor.prefix}")
    assert json.loads(created.after)["replaces"] == former.prefix
    assert text.split("_", 2)[2] not in rotated.after + created.after


def test_api_rotates_and_shows_the_text_once():
    admin = as_role("admin")
    former, _ = create()

    response = admin.post(
        f"/tokens/{former.pk}/rotate", {"overlap": "0", "expires_in": "7d"}, idempotency_key="k"
    )

    made = response.json()
    assert (response.status_code, made["replaces"]) == (201, former.prefix)
    assert Api(x_api_key=made["token"]).get("/switches/").status_code == 200
    again = admin.post(
        f"/tokens/{former.pk}/rotate", {"overlap": "0", "expires_in": "7d"}, idempotency_key="k"
    )
    assert again.json() == {**made, "token": None}


@pytest.mark.parametrize("overlap", ["31d", "soon", "-1h"])
def test_api_names_a_wrong_overlap(overlap):
    former, _ = create()

    response = as_role("admin").post(f"/tokens/{former.pk}/rotate", {"overlap": overlap})

    assert response.status_code == 400
    assert "overlap" in response.json()["errors"]


def test_who_may_rotate_and_revoke(team):
    kim = person("operator", "kim")
    lead, member = person("operator", "lead"), person("operator", "member")
    Membership.objects.create(team=team, user=lead, role="lead")
    Membership.objects.create(team=team, user=member)
    own, _ = create(kim)
    of_team, _ = create(kim, team=team)

    def status(user, token, what="rotate"):
        return signed_in(user).post(f"/tokens/{token.pk}/{what}", {"dry_run": True}).status_code

    assert [status(user, own) for user in (kim, lead, member)] == [200, 403, 403]
    assert [status(user, of_team) for user in (kim, lead, member)] == [403, 200, 403]
    assert [status(user, of_team, "revoke") for user in (lead, member)] == [200, 403]


def test_page_rotates_and_lists_what_was_replaced(team):
    lead, member = person("operator", "lead"), person("operator", "member")
    Membership.objects.create(team=team, user=lead, role="lead")
    Membership.objects.create(team=team, user=member)
    former, _ = create(lead, team=team)
    browser = browser_of(lead)

    form = browser.get(f"/tokens/{former.pk}/rotate/").content.decode()
    assert re.search(r'value="24h"\s+selected', form)
    html = browser.post(f"/tokens/{former.pk}/rotate/", {"overlap": "7d"}).content.decode()

    text = re.search(r'<pre id="token-text"[^>]*>([^<]+)</pre>', html)[1]
    assert services.authenticate_token(text).replaces == former
    listed = browser.get("/tokens/").content.decode()
    assert f"sg_{former.prefix}_…" in listed
    assert f"/tokens/{former.pk}/rotate/" not in listed, "it has a successor"
    seen = browser_of(member).get("/tokens/").content.decode()
    assert former.prefix in seen
    assert "/rotate/" not in seen
    again = browser.post(f"/tokens/{former.pk}/rotate/", {"overlap": "7d"})
    assert again.status_code == 422
    assert "was already replaced" in again.content.decode()


def test_command_rotates(capsys):
    former, _ = create()

    call_command("token", "rotate", former.prefix, "--overlap", "1h")

    text = capsys.readouterr().out.strip().splitlines()[-1]
    assert services.authenticate_token(text).replaces == former
