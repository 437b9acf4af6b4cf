"""Session lifetime, and the content of the session table."""

from datetime import timedelta

import pytest
import time_machine
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.db import connection
from django.test import Client
from django.utils import timezone

from controlplane.accounts import tasks
from controlplane.accounts.authentication import socket_sessions as sockets
from controlplane.accounts.models.people import BrowserSession, User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import MODEL_BACKEND, person

pytestmark = pytest.mark.django_db
PASSWORD = "correct-horse-9"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
BY_ITSELF = {"Switchgear-Background": "1"}


@pytest.fixture
def kim():
    return User.objects.create_user("kim", PASSWORD, role="operator")


def sign_in(**headers) -> Client:
    client = Client(headers=headers)
    response = client.post("/sign-in/", {"username": "kim", "password": PASSWORD})
    assert response.status_code == 302
    return client


def browser(user, ago=timedelta(0)) -> Client:
    """Return a browser that signed in some time ago and has been idle since."""
    client = Client()
    client.force_login(user, backend=MODEL_BACKEND)
    seen_at = timezone.now() - ago
    BrowserSession.objects.update(
        started_at=seen_at,
        last_seen_at=seen_at,
        expire_date=seen_at + timedelta(minutes=settings.ENTRY.idle_minutes),
    )
    return client


def is_in(client: Client) -> bool:
    return client.get("/preferences/").status_code == 200


def key_of(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def test_signing_in_notes_the_browser(kim):
    sign_in(user_agent=FIREFOX)

    session = BrowserSession.objects.get(user=kim)
    assert (session.ip, session.user_agent) == ("127.0.0.1", FIREFOX)
    assert session.method == "password"
    assert abs(db_now() - session.started_at) < timedelta(seconds=10)


def test_table_holds_no_key_that_would_let_anybody_in(kim):
    client = sign_in()

    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(s::text, ' ') FROM core_browsersession s")
        (held,) = cursor.fetchone()
    stolen = Client()
    stolen.cookies[settings.SESSION_COOKIE_NAME] = BrowserSession.objects.get(user=kim).pk
    assert key_of(client) not in held
    assert not is_in(stolen)


def test_idle_browser_is_signed_out(kim):
    idle = timedelta(minutes=settings.ENTRY.idle_minutes)

    assert is_in(browser(kim, idle - timedelta(minutes=1)))
    BrowserSession.objects.all().delete()
    assert not is_in(browser(kim, idle + timedelta(seconds=1)))


def test_whoever_does_something_stays(kim):
    client = browser(kim, timedelta(minutes=settings.ENTRY.idle_minutes - 1))

    is_in(client)

    session = BrowserSession.objects.get()
    left = session.expire_date - timezone.now()
    assert left > timedelta(minutes=settings.ENTRY.idle_minutes - 1)
    assert timezone.now() - session.last_seen_at < timedelta(seconds=10)


def test_what_a_page_asks_by_itself_keeps_nobody_in(kim):
    client = browser(kim, timedelta(minutes=30))
    before = BrowserSession.objects.values("last_seen_at", "expire_date").get()

    answers = [
        client.get("/attention/", headers=BY_ITSELF).status_code,
        client.get("/api/v1/switches/", headers=BY_ITSELF).status_code,
    ]

    assert answers == [200, 200]
    assert BrowserSession.objects.values("last_seen_at", "expire_date").get() == before


def test_the_api_counts_as_doing_something(kim):
    client = browser(kim, timedelta(minutes=30))

    client.get("/api/v1/switches/")

    assert timezone.now() - BrowserSession.objects.get().last_seen_at < timedelta(seconds=10)


def test_nobody_stays_longer_than_the_longest_time(kim):
    client = browser(kim)
    longest = timedelta(minutes=settings.ENTRY.session_minutes)
    began = timezone.now() - longest + timedelta(minutes=10)
    BrowserSession.objects.update(started_at=began, last_seen_at=began)

    is_in(client)

    assert BrowserSession.objects.get().expire_date == began + longest


def test_busy_browser_is_signed_out_in_the_end(kim):
    client = sign_in()
    start = timezone.now()
    minutes = settings.ENTRY.session_minutes

    with time_machine.travel(start, tick=False) as clock:
        for passed in range(30, minutes, 30):
            clock.move_to(start + timedelta(minutes=passed))
            assert is_in(client), f"after {passed} minutes"
        clock.move_to(start + timedelta(minutes=minutes, seconds=1))
        assert not is_in(client)


def test_being_seen_is_written_once_a_minute(kim):
    client = browser(kim, timedelta(minutes=30))
    client.get("/preferences/")

    seen_at = BrowserSession.objects.get().last_seen_at
    client.get("/preferences/")

    assert BrowserSession.objects.get().last_seen_at == seen_at


def test_changing_the_password_does_not_lengthen_the_session(kim):
    client = browser(kim, timedelta(minutes=30))
    began, old = BrowserSession.objects.get().started_at, key_of(client)

    client.post(
        "/preferences/",
        {"old_password": PASSWORD, "new_password1": "tr0ubador-x", "new_password2": "tr0ubador-x"},
    )

    assert BrowserSession.objects.get().started_at == began
    assert key_of(client) != old
    assert is_in(client)


def test_other_browsers_end_with_the_old_password(kim):
    other, client = sign_in(), sign_in()

    client.post(
        "/preferences/",
        {"old_password": PASSWORD, "new_password1": "tr0ubador-x", "new_password2": "tr0ubador-x"},
    )

    assert BrowserSession.objects.filter(user=kim).count() == 1
    assert (is_in(client), is_in(other)) == (True, False)


def test_what_was_saved_after_the_end_brings_nothing_back(kim):
    client = browser(kim)
    session = client.session
    assert "late" not in session  # It is read now.
    BrowserSession.objects.all().delete()

    session["late"] = True
    with pytest.raises(UpdateError):
        session.save()

    assert not BrowserSession.objects.exists()


def test_socket_obeys_the_same_end(kim):
    client = browser(kim)
    session = sockets.find_session(key_of(client)).session

    assert sockets.find_ended_sessions([session]) == set()
    BrowserSession.objects.update(expire_date=db_now() - timedelta(seconds=1))
    assert sockets.find_ended_sessions([session]) == {session}


def test_purge_deletes_what_has_ended_and_nothing_else(kim):
    browser(kim)
    here = browser(person("viewer"))
    ended = BrowserSession.objects.filter(user=kim)
    ended.update(expire_date=db_now() - timedelta(seconds=1))

    assert tasks.purge_sessions(db_now()) == 1
    assert not ended.exists()
    assert is_in(here)
