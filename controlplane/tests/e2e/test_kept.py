"""Typed text survives the end of a session and an unreachable server."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.accounts.models.people import User
from controlplane.core.http.tests.callers import person
from slo.models import Slo
from switches.models import Episode
from switches.tests.browsers import REASON

pytestmark = pytest.mark.e2e
PASSWORD = "correct-horse-9"


def sign_in_beside(desk):
    """Sign in through the page's link, which opens another tab."""
    with desk.context.expect_page() as opened:
        desk.page.get_by_role("link", name="Sign in").click()
    opened.value.get_by_label("User name").fill("kim")
    opened.value.get_by_label("Password").fill(PASSWORD)
    opened.value.get_by_role("button", name="Sign in", exact=True).click()
    opened.value.get_by_role("heading", name="Nothing is engaged").wait_for()
    desk.page.bring_to_front()


def test_signed_out_meanwhile_loses_nothing_that_was_typed(desks):
    kim = User.objects.create_user("kim", PASSWORD, role="operator")
    desk = desks.open_desk(kim)
    page = desk.open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)

    desk.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Engage segment:finance").click()
    expect(page.get_by_text("Signed out")).to_be_visible()
    sign_in_beside(desk)

    expect(page.get_by_label("Reason", exact=True)).to_have_value(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()
    expect(page.get_by_role("button", name="Done")).to_be_visible()
    assert Episode.objects.get().reason == REASON


def test_nor_does_a_page_that_asks_by_itself_take_away_what_was_typed_on_it(desks):
    desk = desks.open_desk(User.objects.create_user("kim", PASSWORD, role="operator"))
    page = desk.open("/switches/engage/")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)

    desk.context.clear_cookies(name="sessionid")
    page.evaluate("document.body.dispatchEvent(new Event('refresh'))")
    expect(page.get_by_text("Signed out")).to_be_visible()
    sign_in_beside(desk)

    expect(page.get_by_label("Reason", exact=True)).to_have_value(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()
    page.wait_for_url("**/switches/segment/finance/**")
    assert Episode.objects.get().reason == REASON


def test_a_page_on_which_nothing_was_typed_leads_to_the_sign_in_and_back(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/switches/engage/")

    desk.context.clear_cookies(name="sessionid")
    page.evaluate("document.body.dispatchEvent(new Event('refresh'))")

    # At the next poll by itself, if one was under way just then. Two responses may both send the
    # browser there, and the first navigation is then aborted.
    expect(page).to_have_url(
        re.compile(r"/sign-in/\?next=%2Fswitches%2Fengage%2F$"), timeout=20_000
    )


def test_a_form_that_leaves_the_page_stays_while_nobody_is_signed_in(desks):
    desk = desks.open_desk(User.objects.create_user("kim", PASSWORD, role="admin"))
    page = desk.open("/slos/new/")
    page.get_by_label("Name").fill("core-availability")
    page.get_by_label("Service").fill("core")
    page.get_by_label("Target").fill("99.9")
    page.get_by_label("Description").fill("정산이 된다")
    expect(page.locator("#preview")).to_contain_text("43 min 12 s")

    desk.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("You are signed out")).to_be_visible()
    sign_in_beside(desk)
    page.get_by_role("button", name="Create").click()

    page.wait_for_url("**/slos/core-availability/**")
    assert Slo.objects.get().description == "정산이 된다"


def test_a_form_that_leaves_the_page_stays_while_nobody_answers(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/switches/engage/")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    button = page.get_by_role("button", name="Engage segment:finance")

    desk.context.set_offline(True)
    button.click()
    expect(page.get_by_text("Nothing was sent")).to_be_visible()
    desk.context.set_offline(False)
    button.click()

    page.wait_for_url("**/switches/segment/finance/**")
    assert Episode.objects.get().reason == REASON
    desk.complaints = [
        text for text in desk.complaints if "ERR_INTERNET" not in text and "htmx:" not in text
    ]


def test_a_console_that_answers_badly_holds_up_nothing_that_is_pressed_again(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/switches/engage/")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    button = page.get_by_role("button", name="Engage segment:finance")

    page.route("**/find/part/**", lambda route: route.fulfill(status=503))
    button.click()
    expect(page.get_by_text("Press again to send it anyway")).to_be_visible()
    assert not Episode.objects.exists()
    button.click()

    page.wait_for_url("**/switches/segment/finance/**")
    assert Episode.objects.get().reason == REASON
    desk.complaints = [text for text in desk.complaints if "status of 503" not in text]
