"""A submitted kill: the button shows at once that it is being sent, and a late answer is said."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.tests.browsers import REASON
from switches.tests.e2e.test_stale import forgive

pytestmark = pytest.mark.e2e


def fill_form(page):
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    expect(page.locator("#plan")).to_contain_text("Every service will be told to stop")


def hold_posts(page):
    held = []

    def hold(route):
        if route.request.method == "POST":
            held.append(route)
        else:
            route.continue_()

    page.route("**/switches/engage/", hold)
    return held


def test_button_says_engaging_from_the_first_frame_and_sends_once(desks):
    page = desks.open_desk(person("operator")).open("/")
    fill_form(page)
    held = hold_posts(page)
    red = page.locator("#dialog .button--stop")

    seen = red.evaluate("red => { red.click(); return [red.textContent.trim(), red.ariaBusy]; }")

    assert seen == ["Engaging…", "true"]
    red.click()
    page.wait_for_timeout(300)
    assert len(held) == 1
    held[0].continue_()
    expect(page.get_by_role("button", name="Done")).to_be_visible()
    assert Episode.objects.count() == 1


def test_kill_without_an_answer_is_not_confirmed_until_the_answer_comes(desks):
    page = desks.open_desk(person("operator")).open("/")
    fill_form(page)
    held = hold_posts(page)
    page.get_by_role("button", name="Engage segment:finance").click()
    dialog = page.get_by_role("dialog")

    expect(dialog.get_by_role("alert")).to_contain_text("Not confirmed yet", timeout=5_000)
    expect(dialog.get_by_role("alert")).to_contain_text("unknown whether the change was made")
    expect(dialog).not_to_contain_text("is engaged")
    held[0].continue_()

    expect(page.get_by_role("button", name="Done")).to_be_visible()
    expect(dialog).not_to_contain_text("Not confirmed")


def test_failed_kill_is_checked_by_the_dialog_once_the_console_answers(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    fill_form(page)
    page.route("**/switches/engage/", lambda route: route.abort("connectionrefused"))

    page.get_by_role("button", name="Engage segment:finance").click()

    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("Not confirmed.")
    expect(page.get_by_role("button", name="Engage segment:finance")).to_be_enabled()
    # The preview still reaches the console, and says that nothing is engaged.
    expect(dialog.get_by_role("alert")).to_have_count(0, timeout=6_000)
    expect(page.locator("#plan")).to_contain_text("will be told to stop")
    forgive(desk)


def test_plain_form_shows_that_it_is_sending_too(desks):
    page = desks.open_desk(person("operator")).open("/switches/engage/?scope=segment&key=finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()
    expect(page.get_by_text(REASON).first).to_be_visible()
    assert Episode.objects.count() == 1
