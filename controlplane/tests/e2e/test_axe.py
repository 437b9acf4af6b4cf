"""axe-core on every page: full and empty, light and dark, desktop and phone."""

import pytest
from playwright.sync_api import expect

from controlplane.tests.e2e import axe, pages

pytestmark = [pytest.mark.e2e, axe.needs_axe, pytest.mark.timeout(1200)]
PARTS = 3  # of all pages of the night, so that one can be run alone: `-k "night and 0"`
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


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_of_a_bad_night_is_accessible(rounds, night, part):
    led_to = [path for group in pages.find_pages(night).values() for path in group]
    paths = [*led_to, *pages.by_itself().values()]
    assert len(paths) > 100
    desk, other = rounds.open_desk(night), rounds.open_desk(night)

    wrong = axe.check_pages([desk.page, other.page], paths[part::PARTS], desk.url)
    assert not wrong, wrong


def test_every_page_of_the_first_day_is_accessible(rounds, first_day):
    paths = [group[0] for group in pages.find_pages(first_day).values()]
    assert len(paths) > 20
    desk, other = rounds.open_desk(first_day), rounds.open_desk(first_day)

    wrong = axe.check_pages([desk.page, other.page], paths, desk.url)
    assert not wrong, wrong


@pytest.mark.smoke
def test_the_ways_in_and_the_boards_are_accessible(rounds, night):
    desk, stranger = rounds.open_desk(night), rounds.open_desk(None)

    wrong = axe.check_pages([desk.page], BOARDS, desk.url, axe.ONE_TURN)
    wrong += axe.check_pages([stranger.page], NOT_SIGNED_IN, desk.url, axe.ONE_TURN)
    assert not wrong, wrong


def test_dialogs_are_accessible_as_they_open(rounds, night):
    faults: axe.Faults = {}
    for path, links in DIALOGS.items():
        for link in links:
            page = rounds.open_desk(night).open(path)
            page.wait_for_load_state()
            page.locator("#main a[data-dialog]").filter(has_text=link).first.click()
            expect(page.locator("#dialog")).to_be_visible()
            axe.judge(page, faults)

    wrong = axe.format_faults(faults)
    assert not wrong, wrong
