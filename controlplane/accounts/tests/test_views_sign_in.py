"""Signing in and out: accepted and rejected attempts, lockouts, and audit rows."""

import socket

import pytest
import time_machine
from django.conf import settings
from django.test import Client

from controlplane.accounts.models.people import User
from controlplane.core import wakeups
from controlplane.core.audit.models import AuditEntry

pytestmark = pytest.mark.django_db
SIGN_IN = "/sign-in/"
PASSWORD = "correct-horse-9"


@pytest.fixture
def kim():
    return User.objects.create_user("kim", PASSWORD, role="operator")


def sign_in(client, username="kim", password=PASSWORD, **more):
    return client.post(SIGN_IN, {"username": username, "password": password, **more})


def lock_out(client):
    for _ in range(settings.AXES_FAILURE_LIMIT):
        response = sign_in(client, password="wrong")
    return response


def actions():
    return list(AuditEntry.objects.order_by("id").values_list("action", "target"))


def test_right_password_signs_in_and_is_noted(client, kim):
    response = sign_in(client)

    assert response.status_code == 302
    assert response["Location"] == "/"
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor_name, entry.ip) == ("session.started", "kim", "127.0.0.1")
    assert entry.request_id == response["X-Request-ID"]


def test_session_gets_a_new_key(client, kim):
    client.get(SIGN_IN)
    client.cookies[settings.SESSION_COOKIE_NAME] = "fixed-by-somebody-else"

    response = sign_in(client)

    assert response.cookies[settings.SESSION_COOKIE_NAME].value != "fixed-by-somebody-else"


@pytest.mark.parametrize(
    ("next_url", "led"),
    [
        ("/audit/?q=x", "/audit/?q=x"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_next_leads_back_but_never_away(client, kim, next_url, led):
    assert sign_in(client, next=next_url)["Location"] == led


def test_wrong_password_is_told_in_one_way_and_noted(client, kim):
    known, unknown = sign_in(client, password="wrong"), sign_in(client, username="nobody")

    for response in (known, unknown):
        assert response.status_code == 422
        assert "That name and password don't match" in response.content.decode()
    assert actions() == [("session.failed", "user:kim")]


def test_name_nobody_has_is_kept_nowhere_in_the_trail(client, kim):
    sign_in(client, username="my-secret-password")

    assert not AuditEntry.objects.exists()


def test_deactivated_person_does_not_get_in(client, kim):
    User.objects.update(is_active=False)

    assert sign_in(client).status_code == 422


@pytest.mark.parametrize("typed", ["a\x00b", "x" * 5000, "", "  "])
def test_odd_names_are_no_error_of_ours(client, kim, typed):
    assert sign_in(client, username=typed).status_code == 422


def test_too_many_failures_lock_out_and_say_until_when(client, kim):
    locking = lock_out(client)

    assert locking.status_code == 429
    html = locking.content.decode()
    assert "Wait 15 minutes" in html
    assert "Try again at" in html
    assert 890 < int(locking["Retry-After"]) <= 900


def test_right_password_does_not_help_while_locked_out(client, kim):
    lock_out(client)

    assert sign_in(client).status_code == 429
    assert not AuditEntry.objects.filter(action="session.started").exists()


def test_trying_while_locked_out_does_not_prolong_it_nor_flood_the_trail(client, kim):
    with time_machine.travel("2026-11-21T02:00:00Z", tick=False) as clock:
        lock_out(client)
        noted = AuditEntry.objects.count()
        clock.shift(600)
        again = sign_in(client)

        assert again["Retry-After"] == "300"
        assert AuditEntry.objects.count() == noted == settings.AXES_FAILURE_LIMIT

        clock.shift(301)
        assert sign_in(client).status_code == 302


def test_colleagues_and_other_addresses_are_not_locked_out(client, kim):
    User.objects.create_user("ayse", PASSWORD)
    lock_out(client)

    assert sign_in(client, username="ayse").status_code == 302
    assert sign_in(Client(REMOTE_ADDR="10.0.0.9")).status_code == 302


def test_forged_forwarding_header_gets_no_further_tries(client, kim):
    lock_out(client)

    response = client.post(
        SIGN_IN,
        {"username": "kim", "password": PASSWORD},
        headers={"X-Forwarded-For": "10.1.2.3", "Forwarded": "for=10.1.2.3"},
    )

    assert response.status_code == 429


def test_throttling_needs_no_redis(client, kim, settings):
    with socket.socket() as taken:  # bound and not listening: every connection is refused
        taken.bind(("127.0.0.1", 0))
        settings.REDIS_URL = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        wakeups._get_waker.cache_clear()
        try:
            assert lock_out(client).status_code == 429
            assert sign_in(client).status_code == 429
        finally:
            wakeups._get_waker.cache_clear()


def test_signed_in_person_is_led_on(client, kim):
    client.force_login(kim, backend="django.contrib.auth.backends.ModelBackend")

    assert client.get(SIGN_IN)["Location"] == "/"


def test_sign_out_ends_the_session_and_is_noted(client, kim):
    sign_in(client)

    response = client.post("/sign-out/", follow=True)

    assert response.redirect_chain == [(SIGN_IN, 302)]
    assert "Signed out." in response.content.decode()
    assert client.get("/").status_code == 302
    assert actions()[-1] == ("session.ended", "user:kim")


def test_sign_out_is_never_done_by_a_link(client, kim):
    sign_in(client)

    assert client.get("/sign-out/").status_code == 405
    assert client.get("/").status_code == 200


def test_sign_in_without_its_csrf_token_is_refused(kim):
    assert sign_in(Client(enforce_csrf_checks=True)).status_code == 403


@pytest.mark.parametrize("path", ["/", "/audit/", "/approvals/", "/preferences/", "/admin/"])
def test_stranger_is_sent_to_the_one_sign_in(client, path):
    response = client.get(path, follow=True)

    assert response.redirect_chain[-1][0].startswith(SIGN_IN)
    assert path in response.redirect_chain[-1][0]
