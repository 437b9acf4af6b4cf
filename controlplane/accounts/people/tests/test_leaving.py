"""Deactivation and role changes, which take effect everywhere at once."""

import json
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client

from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import deactivation
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.tests.callers import MODEL_BACKEND, Api, at_once, person, token_text

pytestmark = pytest.mark.django_db
ACTOR = system_actor("test")


@pytest.fixture
def kim():
    return person("operator", "kim")


def browser(user) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(user, backend=MODEL_BACKEND)
    return client


def leave(user, heir=None):
    return deactivation.deactivate_user(user=user, heir=heir, actor=ACTOR, now=db_now())


def come_back(user):
    return people.change_user(user=user, actor=ACTOR, now=db_now(), is_active=True)


def test_deactivated_person_is_out_of_pages_and_api(kim):
    client = browser(kim)
    assert client.get("/preferences/").status_code == 200

    leave(kim)

    assert client.get("/preferences/").status_code == 302
    assert client.get("/api/v1/switches/").status_code == 401
    assert not BrowserSession.objects.filter(user=kim).exists()
    (entry,) = AuditEntry.objects.filter(action="session.revoked")
    assert (entry.target, entry.before) == ("user:kim", '{"sessions":1}')


def test_coming_back_revives_no_session(kim):
    client = browser(kim)
    leave(kim)

    come_back(kim)

    assert client.get("/preferences/").status_code == 302


def test_session_that_was_saved_in_the_meantime_is_not_revived_either(kim):
    leave(kim)
    client = browser(kim)

    come_back(kim)

    assert client.get("/preferences/").status_code == 302


def test_tokens_of_a_deactivated_person_stop_at_once(kim):
    api = Api(authorization=f"Bearer {token_text(kim, ['switches:read'])}")
    assert api.get("/switches/").status_code == 200

    leave(kim)

    assert api.get("/switches/").status_code == 401


def test_token_that_was_handed_over_goes_on_and_obeys_the_new_owner(kim):
    text = token_text(kim, ["switches:read"], "billing")
    heir = person("viewer", "lee")

    leave(kim, heir)

    token = tokens.authenticate_token(text)
    assert token.owner == heir
    (entry,) = AuditEntry.objects.filter(action="token.handed_over")
    before, after = json.loads(entry.before), json.loads(entry.after)
    assert (before["owner"], after["owner"]) == ("kim", "lee")


def test_heir_who_may_less_is_refused_and_nobody_leaves(kim):
    token_text(kim, ["switches:write"])
    viewer = person("viewer", "lee")

    with pytest.raises(InvalidInput):
        leave(kim, viewer)

    kim.refresh_from_db()
    assert kim.is_active
    assert Token.objects.get().owner == kim


def test_heirs_are_those_who_may_all_of_it(kim):
    token_text(kim, ["switches:write"])
    person("viewer", "lee")
    approver = person("approver", "mo")
    gone = person("admin", "gone")
    person("admin", "root")
    leave(gone)

    assert {each.username for each in deactivation.find_heirs(kim)} == {approver.username, "root"}


def test_tokens_that_have_ended_are_not_handed_over(kim):
    revoked, expired = token_text(kim, ["switches:read"]), token_text(kim, ["switches:read"])
    Token.objects.filter(prefix=tokens.split_token(expired)[0]).update(
        expires_at=db_now() - timedelta(seconds=1)
    )
    Token.objects.filter(prefix=tokens.split_token(revoked)[0]).update(revoked_at=db_now())

    leave(kim, person("operator", "lee"))

    assert set(Token.objects.values_list("owner__username", flat=True)) == {"kim"}


def test_token_that_has_ended_needs_no_other_owner(kim):
    token_text(kim, ["switches:read"])
    token = tokens.revoke_token(token=Token.objects.get(), actor=ACTOR, now=db_now())

    with pytest.raises(Conflict):
        tokens.hand_over_token(token=token, owner=person("admin"), actor=ACTOR, now=db_now())


def test_last_admin_keeps_sessions_and_tokens():
    admin = person("admin")
    client, text = browser(admin), token_text(admin, ["switches:read"])

    with pytest.raises(Conflict):
        leave(admin, person("operator", "lee"))

    assert client.get("/preferences/").status_code == 200
    assert tokens.authenticate_token(text).owner == admin


def test_other_role_counts_for_the_next_request(kim):
    client = browser(kim)
    engage = {"reason": "card payments charged twice", "expires_in": "1h"}
    path = "/api/v1/switches/segment/finance/engage"
    assert client.post(path, engage, content_type="application/json").status_code == 200

    people.change_user(user=kim, actor=ACTOR, now=db_now(), role="viewer")

    assert client.post(path, engage, content_type="application/json").status_code == 403


def test_token_obeys_its_owners_new_role(kim):
    text = token_text(kim, ["switches:read", "switches:write"])

    people.change_user(user=kim, actor=ACTOR, now=db_now(), role="viewer")

    token = tokens.authenticate_token(text)
    assert tokens.find_allowed_scopes(token) == {"switches:read"}


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_deactivate_each_other_at_once_leave_one_behind():
    for turn in range(5):
        both = person("admin", f"one-{turn}"), person("admin", f"two-{turn}")

        answers = at_once(*(partial(leave_or_stay, *pair) for pair in (both, both[::-1])))

        assert sorted(answers) == ["left", "stays"]
        assert User.objects.filter(role="admin", is_active=True).count() == 1
        User.objects.filter(role="admin").update(is_active=False)


def leave_or_stay(user, heir):
    """Deactivate `user`, whose tokens go to the other one; the last admin stays."""
    try:
        leave(user, heir)
    except Conflict:
        return "stays"
    return "left"


def test_what_was_good_once_keeps_nobody_from_being_deactivated(kim):
    User.objects.filter(pk=kim.pk).update(time_zone="US/Pacific-New", email="kim@intranet")

    leave(kim)

    kim.refresh_from_db()
    assert not kim.is_active


def test_heir_who_was_deactivated_in_this_moment_takes_over_nothing(kim):
    ada = person("operator", "ada")
    token_text(kim, ["switches:read"])
    User.objects.filter(pk=ada.pk).update(is_active=False)

    with pytest.raises(InvalidInput, match="ada is deactivated"):
        leave(kim, heir=ada)

    kim.refresh_from_db()
    assert kim.is_active
