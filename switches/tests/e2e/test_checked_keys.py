"""Keys that services check, in the palette, the engage dialog and the switchboard."""

import re
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.tests.browsers import engaged, overdue
from switches.tests.instances import report_checks

pytestmark = pytest.mark.e2e
TRAFFIC = re.compile(r"\d/s by core, \d+ s ago")
NOT_CHECKED = re.compile("No checks.* reported in the last hour", re.IGNORECASE)


def options(page):
    return page.locator("#palette-list [role='option']")


def search(page, text):
    """Type into the palette, and wait for the results of the whole text."""
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-q")).to_be_focused()
    expect(options(page).first).to_be_visible()
    with page.expect_response(lambda response: unquote(response.url).endswith(f"?q={text}")):
        page.keyboard.type(text)
    expect(page.locator("#palette [role='status']")).to_contain_text("result")


def choose(page, title):
    """Select an option by the arrow key, and press Enter."""
    option = options(page).filter(has_text=title)
    expect(option).to_be_visible()
    for _ in range(options(page).count()):
        if option.get_attribute("aria-selected") == "true":
            break
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def test_palette_finds_a_key_that_is_only_checked_and_engages_it(desks):
    report_checks("core/1", "segment:legal", at=db_now(), per_second=5)
    page = desks.open_desk(person("operator")).open("/audit/")

    search(page, "legal")
    expect(options(page).first).to_contain_text("segment:legal")
    expect(options(page).first).to_contain_text(TRAFFIC)
    choose(page, "Engage segment:legal…")

    expect(page.get_by_label("Key", exact=True)).to_have_value("legal")
    expect(page.locator("#blast-said")).to_contain_text("1 instance of 1 service")


def test_first_steps_offer_to_engage_a_key_that_a_service_checks(desks):
    report_checks("core/1", "feature:search", at=db_now(), per_second=5)
    page = desks.open_desk(person("operator")).open("/first-steps/")
    step = page.locator("#step-switch")
    step.locator("summary").click()
    expect(step).to_contain_text("Services checked feature:search in the last hour (")
    expect(step).to_contain_text(re.compile(r"\([45]\.\d/s by core"))  # By when it is asked.

    step.get_by_role("link", name="Engage feature:search").click()

    expect(page.locator("#dialog").get_by_label("Key", exact=True)).to_have_value("search")
    expect(page.locator("#blast-said")).to_contain_text("1 instance of 1 service")


def test_key_that_nobody_checks_is_marked_before_it_is_engaged(desks):
    report_checks("core/1", "segment:legal", at=db_now(), per_second=5)
    page = desks.open_desk(person("operator")).open("/audit/")

    search(page, "segment:leg")
    action = options(page).filter(has_text=re.compile(r"Engage segment:leg…"))
    expect(action).to_contain_text(NOT_CHECKED)
    choose(page, re.compile(r"Engage segment:leg…"))

    expect(page.locator("#blast-said")).to_contain_text(
        "No checks of segment:leg were reported in the last hour"
    )


@pytest.mark.parametrize(
    ("action", "heading"),
    [
        ("Release segment:finance…", "Release segment:finance"),
        ("Extend segment:finance…", "Extend segment:finance"),
        ("Acknowledge segment:finance…", "Acknowledge segment:finance"),
    ],
)
def test_actions_on_a_result_open_by_keyboard(desks, action, heading):
    overdue("segment:finance")
    page = desks.open_desk(person("operator")).open("/audit/")

    search(page, "finance")
    choose(page, action)

    expect(page.locator("#dialog")).to_be_visible()
    expect(page.locator("#dialog-title")).to_contain_text(heading)


def test_switchboard_lists_checked_keys_with_traffic_and_keys_reach_them(desks):
    engaged("segment:finance")
    report_checks("core/1", "segment:legal", "feature:chat", at=db_now(), per_second=5)
    page = desks.open_desk(person("operator")).open("/")
    row = page.locator("#checked-segment-legal")
    expect(row).to_contain_text(TRAFFIC)

    for _ in range(3):
        page.keyboard.press("j")
    expect(row.locator("a:focus")).to_have_count(1)
    page.keyboard.press("k")
    expect(page.locator("#checked-feature-chat a:focus")).to_have_count(1)
    page.keyboard.press("Enter")

    page.wait_for_url("**/switches/feature/chat/")


def test_skip_link_is_the_first_stop_and_moves_the_focus_to_the_switches(desks):
    engaged("segment:finance")
    page = desks.open_desk(person("operator")).open("/")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the switches")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#switches")).to_be_focused()
    page.keyboard.press("Tab")

    assert page.evaluate("document.getElementById('switches').contains(document.activeElement)")


@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_checked_keys_fit_a_phone(desks, width, scheme):
    long_key = "a-key-of-the-full-length." * 4
    report_checks("core/1", "segment:legal", f"feature:{long_key}", at=db_now(), per_second=5)
    phone = {"width": width, "height": 568}
    desk = desks.open_desk(
        person("operator"), viewport=phone, is_mobile=True, has_touch=True, color_scheme=scheme
    )
    page = desk.open("/")

    engage = page.locator("#checked-segment-legal").get_by_role("link", name="Engage")
    box = engage.bounding_box()

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert box["height"] >= 44
    engage.tap()
    expect(page.get_by_label("Key", exact=True)).to_have_value("legal")
