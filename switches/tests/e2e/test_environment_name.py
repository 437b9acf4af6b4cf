"""The environment's name stays visible: on a phone, at 200 % zoom and in a dialog."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e
PHONE = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}
ZOOMED = {"viewport": {"width": 640, "height": 400}}
COVERED = """() => {
  const bars = [...document.querySelectorAll(".environment, .alarm--all > .alarm__word")];
  const under = Math.max(...bars.map((one) => one.getBoundingClientRect().bottom));
  const box = document.activeElement.getBoundingClientRect();
  return document.activeElement.closest("main") && box.top < under - 0.5
    ? document.activeElement.outerHTML.slice(0, 80) : null;
}"""


@pytest.fixture
def production(settings):
    settings.ENVIRONMENT_NAME = "production"


@pytest.mark.parametrize("screen", [PHONE, ZOOMED], ids=["phone", "zoomed"])
def test_scrolled_page_still_says_where_and_that_everything_is_stopped(desks, production, screen):
    for number in range(12):
        engaged(f"segment:s{number}")
    engaged("global:all")
    page = desks.open_desk(person("operator"), **screen).open("/")

    page.locator("tbody tr").last.scroll_into_view_if_needed()

    expect(page.locator(".bars > .environment")).to_be_in_viewport(ratio=1)
    expect(page.get_by_text("Global stop engaged")).to_be_in_viewport(ratio=1)
    tops = page.evaluate(
        "[...document.querySelectorAll('.environment, .alarm--all > .alarm__word')]"
        ".map((one) => one.getBoundingClientRect())"
    )
    assert tops[1]["y"] >= tops[0]["y"] + tops[0]["height"] - 1
    assert tops[1]["y"] + tops[1]["height"] < 80


def test_what_stays_on_top_covers_nothing_that_has_the_focus(desks, production):
    for number in range(12):
        engaged(f"segment:s{number}")
    engaged("global:all")
    page = desks.open_desk(person("operator"), **ZOOMED).open("/")
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.locator(".page-foot a, .page-foot button").last.focus()

    covered = []
    for _ in range(25):
        page.keyboard.press("Shift+Tab")
        covered.append(page.evaluate(COVERED))

    assert [one for one in covered if one] == []


def test_dialog_says_which_environment_it_changes(desks, production):
    page = desks.open_desk(person("operator"), **PHONE).open("/")

    page.get_by_role("link", name="Engage a switch").tap()

    dialog = page.get_by_role("dialog", name="Engage a switch")
    expect(dialog.locator("#dialog-where")).to_have_text("Environment: production")
    expect(dialog.locator("#dialog-where")).to_be_in_viewport(ratio=1)
    expect(dialog).to_have_accessible_description("Environment: production")
    dialog.evaluate("(one) => one.scrollTo(0, one.scrollHeight)")
    expect(dialog.locator("#dialog-where")).to_be_in_viewport(ratio=1)
