"""Passkeys without a browser: alone they replace both steps only with user verification."""

import html
import json
import re

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from controlplane.accounts.models.people import User
from controlplane.core.http.tests.callers import browser_of

from .people import PASSWORD, first_step, kim
from .security_key import SecurityKey

pytestmark = pytest.mark.django_db
ALONE = "/sign-in/passkey/"
ADD = "/preferences/security/passkey/"


def question(response):
    if response["Content-Type"] == "application/json":
        return response.json()
    return json.loads(html.unescape(re.search(r'data-options="([^"]+)"', response.text)[1]))


def send(client, path, answer):
    return client.post(path, {"credential": json.dumps(answer)}, secure=True)


def with_key(user):
    key, browser = SecurityKey(), browser_of(user)
    send(browser, ADD, key.make(question(browser.get(ADD, secure=True))))
    return key


def is_in(client):
    return client.get("/preferences/", secure=True).status_code == 200


@pytest.mark.parametrize("verified", [True, False])
def test_alone_it_lets_in_only_who_gave_its_pin(client, verified):
    key = with_key(kim())
    options = question(client.get(ALONE, secure=True))

    send(client, ALONE, key.show(options, verified=verified))

    assert is_in(client) is verified


def test_whoever_knew_the_session_from_before_is_not_in_with_them(client):
    key = with_key(kim())
    options = question(client.get(ALONE, secure=True))
    other = Client()
    other.cookies = client.cookies.copy()

    send(client, ALONE, key.show(options))

    assert is_in(client)
    assert not is_in(other)


def test_behind_a_password_it_need_not_ask_for_a_pin(client):
    key = with_key(kim())
    first_step(client, secure=True)
    options = question(client.get("/sign-in/second/", secure=True))

    send(client, "/sign-in/second/", key.show(options, verified=False))

    assert is_in(client)


def test_question_of_ones_own_second_step_lets_in_nobody_elses_stolen_key(client):
    stolen = with_key(kim())
    with_key(User.objects.create_user("eve", PASSWORD))
    client.post("/sign-in/", {"username": "eve", "password": PASSWORD}, secure=True)
    options = question(client.get("/sign-in/second/", secure=True))

    send(client, ALONE, stolen.show(options, verified=False))

    assert not is_in(client)


def test_answer_is_taken_once(client):
    key = with_key(kim())
    answer = key.show(question(client.get(ALONE, secure=True)))
    other = Client()
    other.cookies = client.cookies.copy()
    send(client, ALONE, answer)

    send(other, ALONE, answer)

    assert is_in(client)
    assert not is_in(other)


@pytest.mark.parametrize(
    "sent",
    [
        {"type": "\x00"},
        {"clientExtensionResults": "none"},
        {"clientExtensionResults": []},
        {"response": 5},
        {"rawId": None},
        {"more": "\x00" * 100},
    ],
)
def test_whatever_a_browser_sends_is_no_error_of_ours(sent):
    browser, key = browser_of(kim()), SecurityKey()
    answer = key.make(question(browser.get(ADD, secure=True)))

    response = send(browser, ADD, {**answer, **sent})

    assert response.status_code in {200, 302, 422}
    assert browser.get("/preferences/security/", secure=True).status_code == 200
    assert "\\u0000" not in json.dumps([row.data for row in Authenticator.objects.all()])
