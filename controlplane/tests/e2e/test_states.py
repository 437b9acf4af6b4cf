"""Pages in failure states: forbidden, not found, server error, and degraded."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from controlplane.tests.browser import Desks
from controlplane.tests.e2e import axe
from switches.tests.browsers import engaged
from switches.tests.e2e.tap_guard import await_taps

pytestmark = [pytest.mark.e2e, axe.needs_axe]


@pytest.fixture
def far(chromium, console, transactional_db):
    """Windows of a web process whose PostgreSQL and Redis can be taken away."""
    opened = Desks(chromium, console.server.url)
    yield opened
    console.database.mend()
    console.redis.mend()
    opened.close()


def faults_of(page):
    faults: axe.Faults = {}
    axe.judge(page, faults)
    return axe.format_faults(faults)


def test_viewer_is_told_what_he_may_not_do_and_what_he_may(desks):
    page = desks.open_desk(person("viewer")).open("/switches/engage/")

    expect(page.get_by_role("heading", name="You don't have access")).to_be_visible()
    expect(page.get_by_text("If you need access, ask an admin.")).to_be_visible()
    expect(page.get_by_role("link", name="Open the switchboard")).to_be_visible()
    assert faults_of(page) == ""


def test_address_that_is_none_says_so_and_leads_back(desks):
    page = desks.open_desk(person("viewer")).open("/nothing/here/")

    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.get_by_role("link", name="Open the switchboard").press("Enter")
    expect(page.get_by_role("heading", name="Nothing is engaged")).to_be_visible()


def test_errors_of_a_form_are_said_beside_their_fields(desks):
    page = desks.open_desk(person("operator")).open("/switches/engage/")

    page.locator("[data-engage] .button--stop").press("Enter")

    wrong = page.locator("[aria-invalid='true']").first
    expect(wrong).to_be_visible()
    expect(wrong).to_be_focused()
    assert faults_of(page) == ""


def test_without_postgresql_a_page_says_what_still_works(far, console):
    engaged()
    desk = far.open_desk(person("operator", "lee"))
    desk.open("/")

    console.database.cut()
    page = desk.open("/switches/segment/finance/")

    expect(page.get_by_role("heading", name="The console is read-only")).to_be_visible()
    expect(page.get_by_text("Still works: services keep polling")).to_be_visible()
    expect(page.get_by_text("killswitch engage")).to_be_visible()
    stop = page.get_by_role("link", name="Stop something now")
    expect(stop).to_have_attribute("href", "/emergency/")
    assert faults_of(page) == ""

    console.database.mend()
    expect(page.get_by_role("heading", name="finance")).to_be_visible(timeout=30_000)


def test_without_redis_everything_works_and_the_bar_says_so(far, console):
    engaged()
    desk = far.open_desk(person("operator", "lee"))
    console.redis.cut()

    page = desk.open("/switches/segment/finance/")

    expect(page.get_by_role("heading", name="finance")).to_be_visible()
    page.get_by_role("link", name="Extend", exact=True).press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason", exact=True).fill("Vendor fix slips to Monday, INC-4411")
    await_taps(page)
    dialog.get_by_role("button", name="Extend segment:finance").press("Enter")
    expect(dialog).to_be_hidden()


def test_page_without_live_parts_shows_what_a_dialog_changed(desks):
    page = desks.open_desk(person("admin")).open("/targets/")

    page.locator("#add-person").press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.locator("[name=name]").fill("night watch")
    dialog.locator("[name=email]").fill("watch@example.org")
    await_taps(page)
    dialog.locator("button.button--main").press("Enter")

    expect(dialog).to_be_hidden()
    expect(page.locator("#main")).to_contain_text("night watch")
