"""Sessions behind sockets: good, and good no longer."""

import dataclasses
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import Client

from controlplane.accounts.authentication import socket_sessions as sessions
from controlplane.accounts.models.people import BrowserSession
from controlplane.accounts.people import services as people
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden, Unauthenticated
from controlplane.core.http.tests.callers import MODEL_BACKEND, person
from controlplane.core.live.subscribers import session_key_of

from .people import with_app

pytestmark = pytest.mark.django_db


def signed_in(user) -> tuple[Client, str]:
    client = Client()
    client.force_login(user, backend=MODEL_BACKEND)
    return client, client.cookies[settings.SESSION_COOKIE_NAME].value


def is_over(key: str, change) -> bool:
    """Return True if `change` ends the socket's session."""
    session = sessions.find_session(key).session
    assert sessions.find_ended_sessions([session]) == set()
    change()
    return sessions.find_ended_sessions([session]) == {session}


def test_signed_in_person_is_found_with_their_topics():
    user = person("viewer")
    _, key = signed_in(user)

    found = sessions.find_session(key)

    assert found.name == f"user:{user.pk}"
    assert found.topics >= {"degradation", "slo"}


@pytest.mark.parametrize("key", ["", "unheard-of", "x" * 500])
def test_unknown_session_is_nobodys(key):
    with pytest.raises(Unauthenticated):
        sessions.find_session(key)


@pytest.mark.parametrize(
    ("cookie", "key"),
    [
        ("sessionid=" + "a1" * 16, "a1" * 16),
        ("theme=dark; sessionid=" + "a1" * 16, "a1" * 16),
        ("sessionid=" + "A1" * 16, None),
        ("sessionid=" + "a1" * 15, None),
        ("sessionid=" + "a1" * 17, None),
        ("sessionid=unheard-of", None),
        ("sessionid=", None),
        ("", None),
    ],
)
def test_what_can_not_be_a_key_is_none(cookie, key):
    assert session_key_of({b"cookie": cookie.encode()}, "sessionid") == key


def test_key_of_somebody_who_signed_in_is_one():
    _, key = signed_in(person())

    assert session_key_of({b"cookie": f"sessionid={key}".encode()}, "sessionid") == key


def test_session_of_somebody_deactivated_is_nobodys():
    user = person()
    _, key = signed_in(user)
    user.is_active = False
    user.save()

    with pytest.raises(Unauthenticated):
        sessions.find_session(key)


def test_who_has_yet_to_set_up_the_second_factor_of_their_role_gets_no_socket(settings):
    settings.ENTRY = dataclasses.replace(settings.ENTRY, second_factor_roles=("operator",))
    user, other = person("operator"), person("viewer")
    _, key = signed_in(user)

    with pytest.raises(Forbidden, match="/preferences/security/"):
        sessions.find_session(key)

    assert sessions.find_session(signed_in(other)[1]).name == f"user:{other.pk}"
    with_app(user)
    assert sessions.find_session(key).name == f"user:{user.pk}"


def test_session_ends_by_signing_out():
    client, key = signed_in(person())

    assert is_over(key, lambda: client.post("/sign-out/"))


def test_session_ends_by_deactivation():
    user = person()
    _, key = signed_in(user)

    def deactivate():
        people.change_user(user=user, actor=system_actor("test"), now=db_now(), is_active=False)

    assert is_over(key, deactivate)


def test_session_ends_by_another_password():
    user = person()
    _, key = signed_in(user)

    def set_password():
        actor, now = system_actor("test"), db_now()
        people.set_password(user=user, password="another long one", actor=actor, now=now)

    assert is_over(key, set_password)


def test_session_ends_by_another_role():
    user = person("operator")
    _, key = signed_in(user)

    def demote():
        people.change_user(user=user, actor=system_actor("test"), now=db_now(), role="viewer")

    assert is_over(key, demote)


def test_session_ends_in_time():
    _, key = signed_in(person())
    past = db_now() - timedelta(seconds=1)

    assert is_over(key, lambda: BrowserSession.objects.update(expire_date=past))


def test_session_goes_on_whatever_else_it_is_made_to_hold():
    client, key = signed_in(person())

    def write():
        session = client.session
        session["seen"] = "something"
        session.save()

    assert not is_over(key, write)


def test_any_number_is_looked_after_by_one_query(django_assert_num_queries):
    found = [
        sessions.find_session(signed_in(person("viewer", f"p{n}"))[1]).session for n in range(20)
    ]

    with django_assert_num_queries(1):
        assert sessions.find_ended_sessions(found) == set()
