"""A password that someone else set: all else is closed until the person has chosen another one."""

import dataclasses

import pytest
from django.test import Client

from controlplane.accounts.authentication import resets
from controlplane.accounts.authentication import socket_sessions as sockets
from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import Api, with_token

from .people import PASSWORD, WORLD, first_step, kim

pytestmark = pytest.mark.django_db
PAGE = "/preferences/new-password/"
NEW = "another-fine-secret-4"


def create_kim(role: str = "operator") -> User:
    """Return a person with a password that someone else set."""
    user = kim(role)
    people.set_password(user=user, password=PASSWORD, must_change=True, actor=WORLD, now=db_now())
    return user


@pytest.fixture
def browser():
    create_kim("admin")
    client = Client(raise_request_exception=False)
    first_step(client)
    return client


def choose(client, password=NEW, then="/"):
    sent = {"new_password1": password, "new_password2": password}
    return client.post(f"{PAGE}?next={then}", sent)


@pytest.mark.parametrize(
    "path", ["/", "/audit/", "/switches/engage/", "/preferences/", "/confirm/", "/admin/"]
)
def test_every_page_leads_to_choosing_a_password(browser, path):
    assert browser.get(path)["Location"] == f"{PAGE}?next={path.replace('/', '%2F')}"


def test_person_goes_on_to_where_they_wanted_to_go(browser):
    shown = browser.get("/audit/?action=user.created", follow=True)
    where = shown.redirect_chain[-1][0]
    sent = {"new_password1": NEW, "new_password2": NEW}

    response = browser.post(where, sent)

    assert "Choose a new password" in shown.content.decode()
    assert response["Location"] == "/audit/?action=user.created"
    assert browser.get(response["Location"]).status_code == 200
    assert not User.objects.get().must_change_password


def test_next_on_another_site_is_not_followed(browser):
    assert choose(browser, then="https://elsewhere.example/")["Location"] == "/"


def test_change_is_audited_and_ends_other_sessions(browser):
    elsewhere, before = Client(), browser.session.session_key
    first_step(elsewhere)

    choose(browser)

    entry = AuditEntry.objects.filter(action="user.password_set").latest("pk")
    assert (entry.actor_name, entry.target) == ("kim", "user:kim")
    assert browser.session.session_key != before
    assert browser.get("/").status_code == 200
    assert elsewhere.get("/")["Location"].startswith("/sign-in/?")


@pytest.mark.parametrize(
    ("password", "says"), [(PASSWORD, "the password you were given"), ("123", "too short")]
)
def test_the_given_password_or_a_weak_one_is_refused(browser, password, says):
    response = choose(browser, password)

    assert response.status_code == 422
    assert says in response.content.decode()
    assert User.objects.get().must_change_password


def test_a_form_that_was_sent_is_not_taken(browser):
    response = browser.post("/preferences/", {"display_name": "Kim", "time_zone": "UTC"})

    assert response["Location"] == f"{PAGE}?next=%2F"
    assert User.objects.get().display_name == ""


def test_part_of_a_page_leads_the_whole_page_there(browser):
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/audit/"}

    response = browser.get("/find/part/", headers=headers)

    assert (response.status_code, response["HX-Redirect"]) == (204, f"{PAGE}?next=%2Faudit%2F")


def test_api_and_socket_say_what_to_do(browser):
    response = Api(browser).engage("segment:finance")

    assert response.status_code == 403
    assert response["Content-Type"] == "application/problem+json"
    assert PAGE in response.json()["detail"]
    with pytest.raises(Forbidden, match=PAGE):
        sockets.find_session(browser.session.session_key)


def test_signing_out_and_the_theme_stay_open(browser):
    assert browser.post("/theme/", {"theme": "dark", "next": PAGE})["Location"] == PAGE
    assert browser.post("/sign-out/")["Location"] == "/sign-in/"


def test_tokens_are_not_asked():
    assert (
        with_token("switches:write", owner=create_kim()).engage("segment:finance").status_code
        == 200
    )


@pytest.mark.parametrize("method", ["socialaccount", "mfa"])
def test_session_by_single_sign_on_or_passkey_is_not_asked(browser, method):
    session = browser.session
    session["account_authentication_methods"] = [{"method": method, "at": 0}]
    session.save()

    assert browser.get("/audit/").status_code == 200
    assert choose(browser)["Location"] == "/"
    assert User.objects.get().check_password(PASSWORD)  # Without the present one, none is set.


def test_who_was_not_given_a_password_can_not_choose_one_without_the_present_one(client):
    kim()
    first_step(client)

    assert choose(client)["Location"] == "/"
    assert User.objects.get().check_password(PASSWORD)


def test_a_second_factor_is_asked_for_afterwards(browser, settings):
    settings.ENTRY = dataclasses.replace(settings.ENTRY, second_factor_roles=("admin",))

    assert browser.get("/")["Location"].startswith(PAGE)
    choose(browser)
    assert browser.get("/")["Location"] == "/preferences/security/"


def test_reset_link_sets_another_password_than_the_given_one(client):
    path = resets.build_path(create_kim())
    page = client.get(path, follow=True).redirect_chain[-1][0]

    again = client.post(page, {"new_password1": PASSWORD, "new_password2": PASSWORD})
    done = client.post(page, {"new_password1": NEW, "new_password2": NEW})

    assert (again.status_code, done.status_code) == (422, 302)
    assert not User.objects.get().must_change_password
