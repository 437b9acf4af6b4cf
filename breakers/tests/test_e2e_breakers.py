"""A browser watches a breaker open, forces it closed and sees that end."""

import re

import pytest
from playwright.sync_api import expect

from breakers.models import Override
from breakers.services import overrides
from breakers.tests.house import dependency, forced, minute, reports
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.tests.e2e.tap_guard import PHONE, await_taps, center, tap_twice

pytestmark = pytest.mark.e2e

REASON = "Vendor confirms recovery at 03:10, one bad pod flaps, INC-4411"


@pytest.mark.smoke
def test_breaker_opens_operator_forces_it_closed_and_that_expires(desks):
    one = dependency("core->oracle", db_now(), criticality="high")
    reports(one, db_now(), instance="a1")
    page = desks.open_desk(person("operator")).open("/breakers/")
    row = page.locator("tr[data-switch='core → oracle']")
    expect(row).to_contain_text("Closed")

    minute(one, db_now(), 0, success=37, failure=63)
    reports(one, db_now(), "open", instance="a1")

    expect(row).to_contain_text("Open")
    expect(row).to_contain_text("63 % failed")
    expect(page.get_by_role("heading", name="1 open")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("core → oracle is open")

    row.get_by_role("link", name="Force").click()
    dialog = page.locator("#dialog")
    dialog.get_by_text("Forced closed", exact=True).click()
    dialog.get_by_text("Other…").click()
    dialog.get_by_label("Number and unit").fill("8s")
    dialog.get_by_label("Reason", exact=True).fill(REASON)
    dialog.get_by_role("button", name="Force core → oracle closed").click()
    dialog.get_by_role("button", name="Done").click()

    expect(row).to_contain_text("Forced closed")
    reports(one, db_now(), instance="a1", config_version=Override.objects.get().version)
    row.get_by_role("link", name="core to oracle", exact=True).click()
    expect(page.locator("#forced")).to_contain_text("Confirmed by 1 of 1 instance")
    expect(page.locator("#forced")).to_contain_text(REASON)

    page.wait_for_timeout(8000)
    overrides.expire_due_overrides(db_now())

    expect(page.locator("#forced")).to_have_count(0)
    expect(page.locator("#live")).to_contain_text("override.expired")


def test_forced_open_shows_its_consequence_and_is_undone(desks):
    fallback = {"mode": "error", "message": "Questions are unavailable", "user_impact": "No NL2SQL"}
    one = dependency("core->oracle", db_now(), criticality="high", fallback=fallback)
    dependency("canvas->core", db_now())
    reports(one, db_now(), instance="a1")
    minute(one, db_now(), 2, success=270, failure=30)
    page = desks.open_desk(person("operator")).open("/breakers/core/oracle/")
    page.get_by_role("link", name="Force the breaker").click()
    dialog = page.locator("#dialog")
    box = dialog.get_by_role("group", name="Consequences")
    expect(box).to_contain_text("1 instance of core reports this breaker now.")
    expect(box).to_contain_text("1.0/s calls to oracle")
    expect(box).to_contain_text("core is called by canvas")
    expect(box.get_by_text("Users see")).to_be_hidden()
    expect(dialog.get_by_role("button", name="Choose a mode")).to_be_visible()

    dialog.get_by_text("Forced open", exact=True).click()
    expect(box.get_by_text("Questions are unavailable")).to_be_visible()
    expect(box.get_by_text("No NL2SQL")).to_be_visible()
    dialog.get_by_label("Reason", exact=True).fill(REASON)
    dialog.get_by_role("button", name="Force core → oracle open").click()

    expect(dialog).to_contain_text("Confirmed by 0 of 1 instance")
    reports(one, db_now(), instance="a1", config_version=Override.objects.get().version)
    expect(dialog).to_contain_text("Confirmed by 1 of 1 instance")
    dialog.get_by_role("button", name="Undo").click()

    expect(dialog).to_be_hidden()
    expect(page.locator("#forced")).to_have_count(0)
    assert Override.objects.get().ended_why == "undone"


def test_undo_is_offered_after_the_dialog_is_closed(desks):
    dependency("core->oracle", db_now())
    page = desks.open_desk(person("operator")).open("/breakers/")
    page.locator("tr[data-switch='core → oracle']").get_by_role("link", name="Force").click()
    dialog = page.locator("#dialog")
    dialog.get_by_text("Disabled", exact=True).click()
    dialog.get_by_label("Reason", exact=True).fill(REASON)
    dialog.get_by_role("button", name="Disable the breaker of core → oracle").click()
    dialog.get_by_role("button", name="Done").click()

    expect(page.locator("[data-undo-toast]")).to_contain_text("core → oracle is disabled.")
    page.get_by_role("button", name="Undo forcing core → oracle").click()

    expect(page.locator("#toasts")).to_contain_text("core → oracle is no longer forced")
    assert Override.objects.get().ended_why == "undone"


def test_edit_shows_what_would_change_while_one_types(desks):
    dependency("core->oracle", db_now(), timeout_ms=60_000)
    page = desks.open_desk(person("admin")).open("/breakers/core/oracle/edit/")

    page.get_by_label("Timeout ms").fill("30000")

    expect(page.locator("#preview ins")).to_have_text("30000")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("1 change saved")).to_be_visible()


def test_key_opens_the_dialog_and_what_is_typed_survives_a_refresh(desks):
    row = dependency("core->oracle", db_now())
    page = desks.open_desk(person("operator")).open("/breakers/core/oracle/")
    expect(page.locator("[data-as-of]")).to_contain_text("As of")

    page.keyboard.press("f")
    page.locator("#dialog").get_by_label("Reason", exact=True).fill("Ledger drifts")
    reports(row, db_now(), "open")

    expect(page.locator(".switch-head .state").first).to_contain_text("Open")
    expect(page.get_by_label("Reason", exact=True)).to_have_value("Ledger drifts")


@pytest.mark.parametrize("path", ["", "map/", "fallbacks/", "infrastructure/", "core/oracle/"])
def test_phone_page_never_scrolls_sideways(desks, path):
    now = db_now()
    one = dependency("core->oracle", now, fallback={"code": "A_RATHER_LONG_CODE_OF_AN_ERROR"})
    reports(one, now, "open")
    minute(one, now, 0, success=10, failure=35, rejected=55)
    forced(one, now, "metrics_only")
    phone = {**PHONE, "viewport": {"width": 320, "height": 568}}

    page = desks.open_desk(person("operator"), **phone).open(f"/breakers/{path}")

    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_dependency_is_registered_by_hand(desks):
    page = desks.open_desk(person("admin")).open("/breakers/")
    page.get_by_role("link", name="register one").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("Caller").fill("core")
    dialog.get_by_label("Callee").fill("oracle")
    dialog.get_by_role("button", name="Edit its policy").click()

    expect(page.get_by_role("heading", name="Register core → oracle")).to_be_visible()
    page.get_by_label("Timeout ms", exact=True).fill("5000")
    page.get_by_role("button", name="Register").click()

    expect(page.locator("#toasts")).to_contain_text("Registered: core → oracle")
    page.get_by_role("link", name="Breakers", exact=True).first.click()
    expect(page.get_by_role("link", name="Register a dependency")).to_be_visible()


def test_keys_move_between_rows_and_open_one(desks):
    for callee in ("oracle", "store"):
        dependency(f"core->{callee}", db_now())
    page = desks.open_desk(person("viewer")).open("/breakers/")
    first, second = (page.get_by_role("link", name=f"core to {one}") for one in ("oracle", "store"))

    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("/breakers/core/oracle/$"))


def test_click_beside_the_link_of_a_row_opens_its_page(desks):
    dependency("core->oracle", db_now(), owner="team-a")
    page = desks.open_desk(person("operator")).open("/breakers/")

    page.locator("tr[data-switch='core → oracle'] .breakers__instances").click()

    expect(page).to_have_url(re.compile("/breakers/core/oracle/$"))


@pytest.mark.parametrize("pause_ms", [150, 450, 1200])
def test_double_tap_never_forces_a_breaker(desks, pause_ms):
    dependency("core->oracle", db_now())
    page = desks.open_desk(person("operator"), **PHONE).open("/breakers/core/oracle/")
    link, dialog = page.get_by_role("link", name="Force the breaker"), page.locator("#dialog")

    tap_twice(page, *center(link), pause_ms)
    for y in range(40, 800, 90):
        for x in (80, 300):
            if not dialog.is_visible():
                page.goto(page.url)
                link.tap()
                expect(dialog.get_by_label("Reason", exact=True)).to_be_visible()
                await_taps(page)
            tap_twice(page, x, y, pause_ms)
    page.wait_for_timeout(300)

    assert not Override.objects.exists()


def test_double_tap_on_the_button_forces_once_and_does_not_undo(desks):
    dependency("core->oracle", db_now())
    page = desks.open_desk(person("operator"), **PHONE).open("/breakers/core/oracle/")
    page.get_by_role("link", name="Force the breaker").tap()
    dialog = page.locator("#dialog")
    dialog.get_by_text("Forced open", exact=True).tap()
    dialog.get_by_label("Reason", exact=True).fill(REASON)
    button = dialog.get_by_role("button", name="Force core → oracle open")
    button.scroll_into_view_if_needed()

    tap_twice(page, *center(button), 250)
    expect(dialog.get_by_role("button", name="Done")).to_be_visible()
    page.wait_for_timeout(1000)

    assert Override.objects.get().ended_at is None
