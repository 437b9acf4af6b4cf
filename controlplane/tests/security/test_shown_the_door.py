"""Losing an account, role or token while waiting for a lock makes the write fail."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import connection, transaction

from controlplane.accounts.authentication import factors
from controlplane.accounts.models.people import BrowserSession, User
from controlplane.accounts.models.tokens import Token
from controlplane.accounts.people import deactivation, sessions
from controlplane.accounts.people import services as people
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.requests import session_digest
from controlplane.core.http.tests.callers import (
    at_once,
    browser_of,
    person,
    signed_in,
    token_text,
    with_token,
)
from controlplane.core.http.tests.sessions import until_waiting
from switches import publication
from switches.models import Episode

pytestmark = pytest.mark.django_db(transaction=True)
HOUSE = system_actor("test")
OLD, GIVEN, THEIRS = "the one they knew", "given by an admin", "chosen by a thief"
AT_ONCE = {
    "justification": "vendor says it is mended, queue empty",
    "mode": "immediate",
    "break_glass": {"rule": "two-person", "reason": "nobody else awake, losing orders"},
}


def answer_of(call, *, meanwhile):
    """Return the result of `call`, which waits for the publication lock during `meanwhile`."""
    done = threading.Event()

    def call_and_close():
        try:
            return call()
        finally:
            connection.close()

    def changed():
        try:
            meanwhile()
        finally:
            connection.close()
            done.set()

    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic():
            publication.lock()
            answer = threads.submit(call_and_close)
            until_waiting(1)
            change = threads.submit(changed)
            assert done.wait(10)
        change.result()
        return answer.result()


def changed_to(user, **fields):
    people.change_user(user=user, actor=HOUSE, now=db_now(), **fields)


def test_an_approver_who_was_deactivated_meanwhile_frees_nothing():
    bob = person("approver", "bob")
    caller = signed_in(bob)
    caller.engage("global:all")

    answer = answer_of(
        lambda: caller.post("/switches/global/all/release", AT_ONCE),
        meanwhile=lambda: changed_to(bob, is_active=False),
    )

    assert answer.status_code == 403
    assert "just changed" in answer.json()["detail"]
    assert not AuditEntry.objects.filter(action__contains="released").exists()


def demoted_operator():
    olga = person("operator", "olga")
    return signed_in(olga), lambda: changed_to(olga, role="viewer")


def revoked_token():
    caller, token = with_token("switches:write"), Token.objects.get()
    return caller, lambda: tokens.revoke_token(token=token, actor=HOUSE, now=db_now())


def token_of_a_deactivated_operator():
    olga = person("operator", "olga")
    caller = with_token("switches:write", owner=olga)
    return caller, lambda: changed_to(User.objects.get(username="olga"), is_active=False)


def ended_session():
    olga = person("operator", "olga")
    return signed_in(olga), lambda: sessions.end_all(user=olga, actor=HOUSE, now=db_now())


@pytest.mark.parametrize(
    "caller_and_change",
    [demoted_operator, revoked_token, token_of_a_deactivated_operator, ended_session],
)
def test_who_lost_the_permission_meanwhile_stops_nothing(caller_and_change):
    caller, change = caller_and_change()

    answer = answer_of(lambda: caller.engage("segment:finance"), meanwhile=change)

    assert answer.status_code == 403
    assert not Episode.objects.exists()


def test_who_was_given_more_meanwhile_goes_on():
    olga = person("operator", "olga")
    caller = signed_in(olga)

    answer = answer_of(
        lambda: caller.engage("segment:finance"),
        meanwhile=lambda: changed_to(olga, role="approver"),
    )

    assert answer.status_code == 200
    assert answer.json()["state"] == "engaged"


def test_a_password_is_not_changed_by_the_one_that_was_just_replaced():
    """A request of a stolen session races the password reset that ends the session."""
    olga = person("operator", "olga")
    people.set_password(user=olga, password=OLD, actor=HOUSE, now=db_now())
    thief = browser_of(olga)
    form = {"old_password": OLD, "new_password1": THEIRS, "new_password2": THEIRS}
    with ThreadPoolExecutor(1) as threads:

        def post_form():
            try:
                return thief.post("/preferences/", form)
            finally:
                connection.close()

        with transaction.atomic():
            people.set_password(user=olga, password=GIVEN, actor=HOUSE, now=db_now())
            answer = threads.submit(post_form)
            until_waiting(1)
        answer = answer.result()

    after = User.objects.get(pk=olga.pk)
    assert answer.status_code in {400, 403, 409}
    assert (after.check_password(GIVEN), after.check_password(THEIRS)) == (True, False)
    assert not BrowserSession.objects.exists()
    assert thief.get("/").status_code == 302


def test_the_second_factor_of_a_thief_does_not_outlive_a_reset():
    olga = person("operator", "olga")
    asked_in = browser_of(olga).session.session_key
    actor = replace(olga.as_actor(), session=session_digest(asked_in))
    factors.remove_all(user=olga, actor=HOUSE, now=db_now())

    with pytest.raises(Forbidden):
        factors.add_totp(user=olga, secret="A" * 32, actor=actor, now=db_now())

    assert not factors.has_factor(olga)


def test_an_admin_who_is_being_deactivated_does_not_come_back_by_themselves():
    ada, ben = person("admin", "ada"), person("admin", "ben")
    his = signed_in(ben)
    with ThreadPoolExecutor(1) as threads:

        def patch_user():
            try:
                return his.patch(f"/users/{ben.pk}/", {"is_active": True, "role": "admin"})
            finally:
                connection.close()

        with transaction.atomic():
            people.change_user(user=ben, actor=ada.as_actor(), now=db_now(), is_active=False)
            answer = threads.submit(patch_user)
            until_waiting(1)
        answer = answer.result()

    assert answer.status_code == 403
    assert not User.objects.get(pk=ben.pk).is_active


@pytest.mark.parametrize("change", [{"role": "viewer"}, {"is_active": False}])
def test_an_admin_may_lay_down_their_own_role(change):
    person("admin", "ada")
    ben = person("admin", "ben")

    response = signed_in(ben).patch(f"/users/{ben.pk}/", change)

    assert response.status_code == 200
    after = User.objects.get(pk=ben.pk)
    assert (after.role, after.is_active) == (
        change.get("role", "admin"),
        change.get("is_active", True),
    )


def test_leaving_while_ones_tokens_are_revoked_ends_well():
    """Rows before the trail, by everybody: else PostgreSQL ends one of the two."""
    lee, heir, ada = person("operator", "lee"), person("operator", "kim"), person("admin", "ada")
    for number in range(12):
        token_text(lee, ["switches:read"], name=f"t{number}")
    held = list(Token.objects.filter(owner=lee).order_by("-pk"))

    def revoke(some):
        for token in some:
            tokens.revoke_token(token=token, actor=ada.as_actor(), now=db_now())
        return True

    results = at_once(
        lambda: (
            deactivation.deactivate_user(
                user=lee, heir=heir, actor=ada.as_actor(), now=db_now()
            ).is_active
        ),
        lambda: revoke(held[:4]),
        lambda: revoke(held[4:8]),
    )

    assert results == [False, True, True]
    assert Token.objects.filter(owner=lee, revoked_at=None).count() == 0
