"""The notice while the console doesn't answer, with other ways to stop something."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.tests.browsers import REASON, engaged
from switches.tests.e2e.test_stale import forgive

pytestmark = pytest.mark.e2e
SAID = "The console does not respond."


def refuse_requests(page):
    page.route("**/*", lambda route: route.abort("connectionrefused"))


@pytest.mark.parametrize("way", ["click", "key"])
def test_engaging_without_an_answer_says_so_at_once_with_the_lines_for_a_shell(desks, way):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    refuse_requests(page)

    if way == "click":
        page.get_by_role("link", name="Engage a switch").click()
    else:
        page.keyboard.press("e")

    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text(SAID, timeout=2_000)
    expect(dialog.get_by_role("alert")).to_contain_text("Nothing was engaged")
    expect(dialog).to_contain_text("switchgear engage segment:KEY")
    expect(dialog).to_contain_text("manage.py killswitch engage --segment KEY")
    expect(dialog).to_contain_text("SWITCHGEAR_FORCE_ENGAGED=segment:KEY")
    expect(dialog.get_by_role("heading", name="The console does not respond")).to_be_focused()
    forgive(desk)


def test_extending_without_an_answer_names_its_switch_and_tries_again(desks):
    engaged("feature:mail")
    desk = desks.open_desk(person("operator"))
    page = desk.open("/switches/feature/mail/")
    extend = page.get_by_role("link", name=re.compile("^Extend"))
    refuse_requests(page)
    extend.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("killswitch engage --feature mail")
    expect(dialog).to_contain_text("SWITCHGEAR_FORCE_ENGAGED=feature:mail")

    page.unroute("**/*")
    dialog.get_by_role("button", name="Try again").click()

    expect(page.get_by_role("heading", name="Extend feature:mail")).to_be_visible()
    page.keyboard.press("Escape")
    expect(extend).to_be_focused()
    forgive(desk)


def test_an_answer_that_is_late_is_said_to_be_and_comes_all_the_same(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    held = []
    page.route("**/switches/engage/", lambda route: held.append(route))

    page.get_by_role("link", name="Engage a switch").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("Still waiting", timeout=5_000)
    held[0].continue_()

    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    expect(dialog.get_by_role("alert")).to_have_count(0)


def test_a_dialog_closed_while_it_is_late_stays_closed(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    held = []
    page.route("**/switches/engage/", lambda route: held.append(route))
    page.get_by_role("link", name="Engage a switch").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible(timeout=5_000)

    with page.expect_event("requestfailed", lambda one: one.url.endswith("/switches/engage/")):
        page.keyboard.press("Escape")

    expect(dialog).to_be_hidden()
    page.wait_for_timeout(300)
    expect(dialog).to_be_hidden()
    forgive(desk)


def test_a_form_without_an_answer_is_in_doubt_and_keeps_what_was_typed(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    refuse_requests(page)

    page.get_by_role("button", name="Engage segment:finance").click()

    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("unknown whether the change was made")
    expect(dialog).to_contain_text("killswitch engage --segment finance")
    expect(page.get_by_label("Reason", exact=True)).to_have_value(REASON)
    forgive(desk)


def test_a_viewer_is_told_that_it_does_not_answer_without_commands(desks):
    desk = desks.open_desk(person("viewer"))
    page = desk.open("/")
    page.route("**/*", lambda route: route.fulfill(status=502, body="Bad gateway"))

    page.evaluate(
        "document.dispatchEvent(new CustomEvent('switchgear:open', { detail: { path: '/find/' } }))"
    )

    expect(page.get_by_role("dialog")).to_contain_text("Nothing changed")
    expect(page.get_by_role("dialog")).not_to_contain_text("killswitch")
    desk.complaints = [text for text in desk.complaints if "502" not in text]
    forgive(desk)
