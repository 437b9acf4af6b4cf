"""Emergency code in a real browser: created after confirming, shown once, printed, revoked."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from controlplane.accounts.emergency_codes import codes
from controlplane.accounts.models import EmergencyCode
from controlplane.core.http.tests.callers import person
from controlplane.tests.e2e import axe

from .people import PASSWORD, kim

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]
PAGE = "/preferences/security/"
DESK = {"viewport": axe.DESK}
PHONE = {"viewport": axe.PHONE, "has_touch": True, "is_mobile": True}
WINDOWS = [
    pytest.param({**DESK, "color_scheme": "light"}, id="desktop"),
    pytest.param({**DESK, "color_scheme": "dark"}, id="desktop-dark"),
    pytest.param({**PHONE, "color_scheme": "light"}, id="phone"),
    pytest.param({**PHONE, "color_scheme": "dark"}, id="phone-dark"),
]


def take_picture(page: Page, name: str) -> None:
    """Save a screenshot if `SCREENSHOTS` names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"emergency-code-{name}.png", full_page=True)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("window", WINDOWS)
def test_code_is_created_shown_once_replaced_and_revoked(desks, window, request):
    name = request.node.callspec.id
    page = desks.open_desk(kim(), **window).open(PAGE)
    expect(page.get_by_role("heading", name="Emergency code")).to_be_visible()
    take_picture(page, f"none-{name}")

    page.get_by_role("button", name="Create code").click()
    expect(page.get_by_role("heading", name="Your Switchgear emergency code")).to_be_visible()
    first = page.locator("#emergency-code").inner_text()
    take_picture(page, f"shown-{name}")
    assert fits(page)
    page.get_by_role("link", name="I've saved it").click()

    expect(page.get_by_text("never used")).to_be_visible()
    assert first not in page.content()
    take_picture(page, f"set-{name}")
    assert fits(page)
    page.get_by_role("button", name="Replace code").click()
    expect(page.get_by_role("heading", name="Your Switchgear emergency code")).to_be_visible()
    second = page.locator("#emergency-code").inner_text()
    row = EmergencyCode.objects.current().get()
    assert codes.is_correct(second, bytes.fromhex(row.salt), bytes.fromhex(row.digest))
    assert second != first

    page.goto(page.url.replace("/preferences/emergency-code/", PAGE))
    page.get_by_role("button", name="Revoke code").click()
    expect(page.get_by_text("Emergency code revoked.")).to_be_visible()
    assert not EmergencyCode.objects.current().exists()


def test_person_confirms_their_identity_first(desks, settings):
    desk = desks.open_desk(None)
    kim()
    page = desk.open("/sign-in/")
    page.get_by_label("User name").fill("kim")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"{desk.url}/")
    settings.ENTRY = replace(settings.ENTRY, confirm_minutes=-60)
    page = desk.open(PAGE)

    page.get_by_role("button", name="Create code").click()

    expect(page.get_by_role("heading", name=re.compile("Confirm"))).to_be_visible()
    assert not EmergencyCode.objects.exists()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Security", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Create code")).to_be_visible()


def test_code_is_printed_without_buttons_and_kept_in_one_piece(desks):
    desk = desks.open_desk(kim(), viewport={"width": 718, "height": 1000})
    page = desk.open(PAGE)
    page.get_by_role("button", name="Create code").click()
    expect(page.locator("#emergency-code")).to_be_visible()

    page.emulate_media(media="print")

    expect(page.locator("#emergency-code")).to_be_visible()
    expect(page.get_by_text(f"{desk.url}/emergency/")).to_be_visible()
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    expect(page.get_by_role("link", name="I've saved it")).to_be_hidden()
    take_picture(page, "print")


@axe.needs_axe
@pytest.mark.parametrize("window", WINDOWS[:2])
def test_pages_with_the_code_are_accessible(desks, window):
    desk = desks.open_desk(kim(), **window)
    faults: axe.Faults = {}
    page = desk.open(PAGE)

    page.get_by_role("button", name="Create code").click()
    expect(page.locator("#emergency-code")).to_be_visible()
    axe.judge(page, faults)
    page.get_by_role("link", name="I've saved it").click()
    expect(page.get_by_text("never used")).to_be_visible()
    axe.judge(page, faults)

    assert axe.format_faults(faults) == ""


def test_admin_revokes_the_code_on_the_page_of_the_person(desks):
    user = kim()
    page = desks.open_desk(user).open(PAGE)
    page.get_by_role("button", name="Create code").click()
    expect(page.locator("#emergency-code")).to_be_visible()
    page = desks.open_desk(person("admin", "root")).open(f"/people/{user.pk}/")
    take_picture(page, "person")

    page.get_by_role("button", name="Revoke emergency code").click()

    expect(page.get_by_text("Emergency code of kim revoked.")).to_be_visible()
    assert not EmergencyCode.objects.current().exists()
