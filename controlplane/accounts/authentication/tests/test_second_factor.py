"""The second sign-in step: when it is required, and accepted and rejected proofs."""

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.management import call_command
from django.test import Client

from controlplane.accounts.authentication import codes
from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry

from .people import PASSWORD, code, first_step, kim, with_app

pytestmark = pytest.mark.django_db
SECOND = "/sign-in/second/"
NOW = "2026-11-21T02:00:10Z"


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False) as found:
        yield found


@pytest.fixture
def app(client):
    return with_app(kim())


def second(client, text, **more):
    return client.post(SECOND, {"code": text}, **more)


def started():
    return AuditEntry.objects.filter(action="session.started").count()


def wrong(secret):
    return next(
        text
        for text in (f"{number:06}" for number in range(10))
        if all(text != code(secret, periods) for periods in (-1, 0, 1))
    )


def test_password_alone_is_not_enough_and_nothing_is_noted_yet(client, app):
    response = first_step(client, next="/audit/")

    assert response["Location"] == SECOND
    assert client.get("/")["Location"].startswith("/sign-in/")
    assert client.get("/api/v1/switches/").status_code == 401
    assert started() == 0


def test_code_of_the_app_lets_in_and_leads_on(client, app):
    first_step(client, next="/audit/")

    response = second(client, code(app[0]))

    assert response["Location"] == "/audit/"
    assert client.get("/audit/").status_code == 200
    assert started() == 1


def test_every_step_has_another_session_key(client, app):
    keys = []
    client.get("/sign-in/")
    for step in (lambda: first_step(client), lambda: second(client, code(app[0]))):
        step()
        keys.append(client.cookies[settings.SESSION_COOKIE_NAME].value)

    assert len(set(keys)) == 2


def test_key_from_before_the_last_step_stays_outside(client, app):
    first_step(client)
    planted = client.cookies[settings.SESSION_COOKIE_NAME].value
    second(client, code(app[0]))
    other = Client()
    other.cookies[settings.SESSION_COOKIE_NAME] = planted

    assert other.get("/").status_code == 302


@pytest.mark.parametrize("periods", [-1, 0, 1])
def test_phone_whose_clock_is_a_little_off_is_let_in(client, app, periods):
    first_step(client)

    assert second(client, code(app[0], periods)).status_code == 302


@pytest.mark.parametrize("periods", [-2, 2])
def test_code_of_another_minute_opens_nothing(client, app, periods):
    first_step(client)

    assert second(client, code(app[0], periods)).status_code == 422


def test_code_opens_once_also_for_another_browser(client, app):
    first_step(client)
    second(client, code(app[0]))
    other = Client()
    first_step(other)

    assert second(other, code(app[0])).status_code == 422


def test_recovery_code_opens_once(client, app):
    recovery = app[1][0]
    first_step(client)
    shown = f"{recovery[:4]} {recovery[4:]}"
    other = Client()

    assert second(client, shown).status_code == 302
    first_step(other)
    assert second(other, recovery).status_code == 422


@pytest.mark.parametrize("text", ["", "abcdef", "١٢٣٤٥٦", "12\x003456", "9" * 5000])
def test_odd_codes_open_nothing(client, app, text):
    first_step(client)

    response = second(client, text)

    assert response.status_code == 422
    assert "Wrong code." in response.content.decode()


def test_wrong_codes_are_noted_and_lock_out(client, app):
    first_step(client)
    for _ in range(settings.AXES_FAILURE_LIMIT):
        response = second(client, wrong(app[0]))

    assert response.status_code == 429
    assert AuditEntry.objects.filter(action="session.failed").count() == settings.AXES_FAILURE_LIMIT
    assert first_step(client).status_code == 429


def test_codes_can_not_be_guessed_from_many_addresses(app):
    for number in range(codes.MAX_WRONG):
        browser = Client(REMOTE_ADDR=f"10.0.0.{number + 1}")
        first_step(browser)
        second(browser, wrong(app[0]))
    browser = Client(REMOTE_ADDR="10.0.1.1")
    first_step(browser)

    response = second(browser, code(app[0]))

    assert response.status_code == 429
    assert started() == 0


def test_guessing_is_forgotten_after_a_quarter_of_an_hour(clock, app):
    test_codes_can_not_be_guessed_from_many_addresses(app)
    clock.shift(16 * 60)
    browser = Client()
    first_step(browser)

    assert second(browser, code(app[0])).status_code == 302


def test_guessing_is_forgotten_when_they_are_unlocked_from_the_shell(app):
    test_codes_can_not_be_guessed_from_many_addresses(app)
    browser = Client()
    assert first_step(browser).status_code == 302
    assert second(browser, code(app[0])).status_code == 429

    call_command("person", "unlock", "kim")

    first_step(browser)
    assert second(browser, code(app[0])).status_code == 302


def test_second_step_without_the_first_leads_back(client, app):
    assert second(client, code(app[0]))["Location"] == "/sign-in/"


def test_half_signed_in_for_too_long_begins_anew(clock, client, app):
    first_step(client)
    clock.shift(settings.ACCOUNT_LOGIN_TIMEOUT + 1)

    assert second(client, code(app[0]))["Location"] == "/sign-in/"


def test_who_was_deactivated_between_the_steps_stays_outside(client, app):
    first_step(client)
    User.objects.update(is_active=False)

    assert second(client, code(app[0]))["Location"] == "/sign-in/"


def test_code_without_its_csrf_token_is_refused(app):
    browser = Client(enforce_csrf_checks=True)
    browser.get("/sign-in/")
    token = browser.cookies["csrftoken"].value
    first_step(browser, csrfmiddlewaretoken=token)

    assert second(browser, code(app[0])).status_code == 403


def test_secrets_are_sealed_where_they_lie(app):
    kept = str(list(Authenticator.objects.values_list("data", flat=True)))

    assert app[0] not in kept
    assert not any(recovery in kept for recovery in app[1])


def test_secret_of_a_lost_key_opens_nothing_and_breaks_nothing(client, app, settings):
    first_step(client)
    session = client.session.session_key
    settings.SECRET_KEY = "another-key-of-the-same-length-that-nobody-knows-before-now"
    browser = Client()
    first_step(browser)

    assert session
    assert second(browser, code(app[0])).status_code == 422


def test_replaced_key_still_opens_while_it_is_a_fallback(app, settings):
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-key-of-the-same-length-that-nobody-knows-before-now"
    browser = Client()
    first_step(browser)

    assert second(browser, code(app[0])).status_code == 302


def test_nobody_without_a_second_factor_is_asked(client):
    kim()

    assert client.post("/sign-in/", {"username": "kim", "password": PASSWORD})["Location"] == "/"


def test_first_step_with_a_password_that_was_changed_meanwhile_is_worth_nothing(client, app):
    first_step(client)
    user = User.objects.get()
    user.set_password("another-fine-secret-4")
    user.save()

    response = second(client, code(app[0]))

    assert response["Location"] == "/sign-in/"
    assert client.get("/").status_code == 302
