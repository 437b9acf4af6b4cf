"""A person's own second factors: set up, looked at, replaced and removed."""

import re

import pytest
from allauth.mfa.models import Authenticator

from controlplane.accounts.authentication import factors
from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http import confirmation
from controlplane.core.http.tests.callers import browser_of

from .people import code, first_step, kim, with_app

pytestmark = pytest.mark.django_db
PAGE = "/preferences/security/"


@pytest.fixture
def person():
    return kim()


@pytest.fixture
def browser(person):
    return browser_of(person)


def actions():
    return list(AuditEntry.objects.order_by("id").values_list("action", flat=True))


def add_app(browser):
    html = browser.get(f"{PAGE}app/").content.decode()
    secret = re.search(r'class="secret">([A-Z2-7 ]+)<', html)[1].replace(" ", "")
    return secret, browser.post(f"{PAGE}app/", {"code": code(secret)})


def test_app_is_added_by_its_first_code_and_brings_ten_recovery_codes(browser, person):
    secret, response = add_app(browser)

    shown = re.findall(r"<code>(\d{4} \d{4})</code>", response.content.decode())
    assert len(set(shown)) == 10
    assert factors.get_factors(person).totp_since
    assert actions() == ["factor.added"]
    entry = AuditEntry.objects.get()
    assert secret not in str((entry.before, entry.after, entry.reason))


def test_wrong_code_adds_nothing_and_keeps_the_same_secret(browser, person):
    before = browser.get(f"{PAGE}app/").content.decode()
    response = browser.post(f"{PAGE}app/", {"code": "000"})

    secret = re.search(r'class="secret">([A-Z2-7 ]+)<', before)[0]
    assert response.status_code == 422
    assert secret in response.content.decode()
    assert not Authenticator.objects.exists()


def test_secret_that_waits_for_its_code_is_sealed_in_the_session(browser):
    html = browser.get(f"{PAGE}app/").content.decode()
    secret = re.search(r'class="secret">([A-Z2-7 ]+)<', html)[1].replace(" ", "")

    assert secret not in str(dict(browser.session))


def test_new_recovery_codes_stop_the_earlier_ones(browser, person):
    _, earlier = with_app(person)

    html = browser.post(f"{PAGE}codes/").content.decode()

    assert len(re.findall(r"<code>\d{4} \d{4}</code>", html)) == 10
    assert f"{earlier[0][:4]} {earlier[0][4:]}" not in html
    assert actions()[-1] == "factor.codes_made"


def test_without_a_second_factor_there_are_no_recovery_codes(browser):
    assert browser.post(f"{PAGE}codes/").status_code == 409
    assert not Authenticator.objects.exists()


def test_last_factor_takes_the_recovery_codes_with_it(browser, person):
    with_app(person)

    browser.post(f"{PAGE}remove/", {"factor": "app"})

    assert not Authenticator.objects.exists()
    assert actions()[-1] == "factor.removed"


def test_nobody_removes_what_is_somebody_elses(browser):
    stranger = User.objects.create_user("ayse", "x-9-correct-horse")
    row = Authenticator.objects.create(user=stranger, type="webauthn", data={"name": "Key"})

    assert browser.post(f"{PAGE}remove/", {"factor": str(row.pk)}).status_code == 404
    assert Authenticator.objects.filter(pk=row.pk).exists()


@pytest.mark.parametrize("factor", ["", "x", "-1", "9" * 30, "١"])
def test_odd_factors_are_no_error_of_ours(browser, factor):
    assert browser.post(f"{PAGE}remove/", {"factor": factor}).status_code == 400


@pytest.mark.parametrize("path", ["app/", "passkey/"])
def test_who_signed_in_long_ago_shows_first_who_they_are(browser, path):
    session = browser.session
    session[confirmation.KEY] = 0
    session.save()

    assert browser.get(f"{PAGE}{path}")["Location"].startswith("/confirm/?next=")


@pytest.mark.parametrize("path", ["remove/", "codes/"])
def test_nothing_is_taken_away_by_who_signed_in_long_ago(browser, person, path):
    with_app(person)
    session = browser.session
    session[confirmation.KEY] = 0
    session.save()

    response = browser.post(f"{PAGE}{path}", {"factor": "app"})

    assert response["Location"] == "/confirm/?next=%2Fpreferences%2Fsecurity%2F"
    assert factors.get_factors(person).totp_since


def test_code_that_added_the_app_opens_nothing_else(browser, client):
    _, added = add_app(browser)
    first_step(client)

    client.post("/sign-in/second/", {"code": added.wsgi_request.POST["code"]})

    assert client.get("/").status_code == 302
