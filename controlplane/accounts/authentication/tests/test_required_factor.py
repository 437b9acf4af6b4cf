"""A role that requires a second factor: all else is closed until there is one."""

import dataclasses

import pytest

from controlplane.accounts.authentication import factors
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.callers import Api, browser_of, person, with_token

from .people import WORLD, first_step, kim, with_app

pytestmark = pytest.mark.django_db
PAGE = "/preferences/security/"


@pytest.fixture(autouse=True)
def required(settings):
    roles = ("operator", "admin")
    settings.ENTRY = dataclasses.replace(settings.ENTRY, second_factor_roles=roles)


@pytest.mark.parametrize("path", ["/", "/audit/", "/switches/engage/", "/preferences/", "/admin/"])
def test_every_page_leads_to_setting_one_up(path):
    browser = browser_of(kim("admin"))

    assert browser.get(path)["Location"] == PAGE


def test_page_says_why(client):
    kim()
    first_step(client)

    html = client.get("/", follow=True).content.decode()

    assert "Set up a second factor to continue" in html


def test_api_says_what_to_do():
    response = Api(browser_of(kim())).engage("segment:finance")

    assert response.status_code == 403
    assert PAGE in response.json()["detail"]


def test_part_of_a_page_leads_the_whole_page_there():
    response = browser_of(kim()).get("/", headers={"HX-Request": "true"})

    assert (response.status_code, response["HX-Redirect"]) == (204, PAGE)


def test_who_set_one_up_goes_on():
    user = kim()
    browser = browser_of(user)
    browser.get("/")
    with_app(user)

    assert browser.get("/").status_code == 200


def test_what_is_needed_to_set_one_up_or_to_leave_stays_open():
    browser = browser_of(kim())

    assert browser.get(PAGE).status_code == 200
    assert browser.get(f"{PAGE}app/").status_code == 200
    assert browser.get("/confirm/").status_code == 200
    assert browser.post("/sign-out/")["Location"] == "/sign-in/"


def test_other_roles_and_tokens_are_not_asked():
    assert browser_of(person("viewer")).get("/").status_code == 200
    assert with_token("switches:write").engage("segment:finance").status_code == 200


def test_last_one_can_not_be_removed():
    user = kim()
    with_app(user)

    with pytest.raises(Conflict):
        factors.remove_factor(user=user, factor_id=None, actor=WORLD, now=db_now())
    assert factors.has_factor(user)


def test_who_lost_theirs_is_reset_by_an_admin_and_asked_anew():
    user = kim()
    with_app(user)
    browser = browser_of(user)
    browser.get("/")

    factors.remove_all(user=user, actor=WORLD, now=db_now())

    assert browser.get("/").status_code == 302
