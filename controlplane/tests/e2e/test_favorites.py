"""A switch is starred, found by the filter, and unstarred, by keyboard alone."""

import re

import pytest
from playwright.sync_api import expect

from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e


def test_switch_is_starred_filtered_and_unstarred_by_keyboard(desks):
    kim = engaged("segment:finance")
    engaged("segment:legal")
    page = desks.open_desk(kim).open("/")
    star = page.get_by_role("button", name="Favorite segment:finance")
    expect(star).to_have_attribute("aria-pressed", "false")

    star.focus()
    page.keyboard.press("Enter")

    expect(star).to_have_attribute("aria-pressed", "true")
    expect(star).to_be_focused()

    page.locator("#mine-filter").focus()
    page.keyboard.press("f")  # Favorites
    expect(page).to_have_url(re.compile("mine=favorites"))
    expect(page.locator("#row-segment-finance")).to_be_visible()
    expect(page.locator("#row-segment-legal")).to_have_count(0)

    star.focus()
    page.keyboard.press("Space")

    expect(star).to_have_attribute("aria-pressed", "false")
    page.reload()
    expect(page.get_by_role("heading", name="No matches")).to_be_visible()
