"""Every page by axe-core: full and empty, light and dark, on a desk and on a phone."""

import pytest
from playwright.sync_api import expect

from controlplane.tests.e2e import axe, pages

pytestmark = [pytest.mark.e2e, axe.needs_axe, pytest.mark.timeout(1200)]
NOT_SIGNED_IN = ("/sign-in/", "/nothing/here/")
BOARDS = (
    "/",
    "/switches/segment/finance/",
    "/switches/engage/",
    "/attention/",
    "/breakers/",
    "/dead-letters/",
    "/slos/",
    "/audit/",
)
DIALOGS = {
    "/": ("Engage a switch", "Extend"),
    "/switches/segment/finance/": ("Release", "Extend"),
    "/breakers/": ("Force",),
    "/slos/core-availability/": ("Exclude",),
}


def test_every_page_of_a_bad_night_is_accessible(rounds, night):
    paths = [path for group in pages.found(night).values() for path in group]
    assert len(paths) > 100
    desk = rounds.of(night)

    assert axe.of(desk.page, paths, desk.url) == ""


def test_every_page_of_the_first_day_is_accessible(rounds, first_day):
    paths = [group[0] for group in pages.found(first_day).values()]
    assert len(paths) > 20
    desk = rounds.of(first_day)

    assert axe.of(desk.page, paths, desk.url) == ""


@pytest.mark.smoke
def test_the_ways_in_and_the_boards_are_accessible(rounds, night):
    desk = rounds.of(night)

    assert axe.of(desk.page, BOARDS, desk.url, axe.ONE_TURN) == ""
    assert axe.of(rounds.of(None).page, NOT_SIGNED_IN, desk.url, axe.ONE_TURN) == ""


def test_dialogs_are_accessible_as_they_open(rounds, night):
    faults: axe.Faults = {}
    for path, links in DIALOGS.items():
        for link in links:
            page = rounds.of(night).open(path)
            page.wait_for_load_state()
            page.locator("#main a[data-dialog]").filter(has_text=link).first.click()
            expect(page.locator("#dialog")).to_be_visible()
            axe.judge(page, faults)

    assert axe.told(faults) == ""
