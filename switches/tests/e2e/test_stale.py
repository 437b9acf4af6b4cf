"""Stale pages: a notice, and only actions that depend on the state are disabled."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.tests.browsers import REASON, engaged

pytestmark = pytest.mark.e2e


def forgive(desk):
    """Ignore the browser's own messages about the missing network."""
    own = ("ERR_", "htmx:sendError", "htmx:timeout", "htmx:afterRequest")
    desk.complaints = [text for text in desk.complaints if not any(one in text for one in own)]


def test_release_waits_while_stale_and_engaging_does_not(desks):
    engaged("segment:finance")
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    # Polls of the page fail; requests of a person succeed.
    page.route("**/*", lambda route: _only_people(route))
    expect(page.locator("[data-as-of]")).to_contain_text("Not current since")

    release = page.get_by_role("link", name="Release segment:finance")
    expect(release).to_have_attribute("aria-disabled", "true")
    release.click(force=True)  # force: the button is disabled
    expect(page.locator("#toasts")).to_contain_text("not been current since")
    expect(page.get_by_role("dialog")).to_be_hidden()

    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("other")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:other").click()
    expect(page.get_by_role("button", name="Done")).to_be_visible()
    assert Episode.objects.count() == 2

    page.get_by_role("button", name="Done").click()
    page.unroute("**/*")
    # The dialog has its own notice, and is emptied a moment after it is closed.
    expect(page.locator("#main [data-as-of]")).to_contain_text("As of", timeout=20_000)
    expect(release).not_to_have_attribute("aria-disabled", "true")
    release.click()
    expect(page.get_by_label("Why it is safe now")).to_be_visible()
    forgive(desk)


def _only_people(route):
    if route.request.headers.get("switchgear-background"):
        route.abort()
    else:
        route.continue_()


def test_silence_without_a_failure_is_stale_too(desks):
    engaged("segment:finance")
    desk = desks.open_desk(person("viewer"))
    page = desk.open("/")
    expect(page.locator("[data-as-of]")).to_contain_text("As of")
    page.clock.install()
    # No response and no error, as after the machine slept.
    page.evaluate(
        "document.addEventListener('htmx:beforeRequest', (e) => e.preventDefault(), true)"
    )

    page.clock.fast_forward(40_000)

    expect(page.locator("[data-as-of]")).to_contain_text("Not current since")
    expect(page.locator("[data-dims]").first).to_have_class(re.compile("is-stale"))


def test_coming_back_to_the_window_asks_at_once(desks):
    page = desks.open_desk(person("viewer")).open("/attention/")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)

    with page.expect_request(re.compile("/attention/rows/"), timeout=4_000) as request:
        page.evaluate("window.dispatchEvent(new Event('focus'))")

    assert request.value.headers["switchgear-background"] == "1"


def test_what_the_page_asks_by_itself_says_so_and_what_people_ask_does_not(desks):
    engaged("segment:finance")
    page = desks.open_desk(person("operator")).open("/")

    with page.expect_request(re.compile("/switchboard/rows/")) as polled:
        pass
    with page.expect_request(re.compile("/switches/engage/")) as opened:
        page.keyboard.press("e")
    page.get_by_label("Key", exact=True).wait_for()
    page.keyboard.press("Escape")
    with page.expect_request(lambda one: one.headers.get("hx-trigger") == "search") as searched:
        page.get_by_label("Search id, reason, person, owner").fill("fin")

    assert polled.value.headers["switchgear-background"] == "1"
    assert "switchgear-background" not in opened.value.headers
    assert "switchgear-background" not in searched.value.headers
