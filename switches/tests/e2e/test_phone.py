"""Engaging from a phone: four taps from the home page, with a usable reason."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from controlplane.core.reasons import find_reason_problems
from switches.models import Episode
from switches.tests.browsers import engaged, released

pytestmark = pytest.mark.e2e
PHONE = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}


class Thumb:
    """Taps visible elements and counts the taps."""

    def __init__(self):
        self.taps = 0

    def tap(self, target):
        expect(target).to_be_in_viewport(ratio=1)  # no scrolling in between
        target.tap()
        self.taps += 1


@pytest.mark.smoke
def test_four_taps_from_the_home_page_stop_it(desks):
    engaged("segment:finance", reason="OpenAI 5xx on completions since 02:10, INC-4411")
    released("segment:finance")
    page = desks.open_desk(person("operator"), **PHONE).open("/")
    thumb = Thumb()

    thumb.tap(page.get_by_role("link", name="Engage a switch"))
    thumb.tap(page.get_by_role("dialog").get_by_role("link", name="segment:finance"))
    thumb.tap(page.locator("label").filter(has_text="Errors or timeouts seen at"))
    thumb.tap(page.get_by_role("button", name="Engage segment:finance"))

    expect(page.locator("#effect-dialog-said")).to_be_visible()
    assert thumb.taps == 4
    episode = Episode.objects.get(ended_at=None)
    assert episode.switch_id == "segment:finance"
    assert find_reason_problems(episode.reason) == []
    assert episode.on_expiry == "hold"


def test_keyboard_of_the_phone_stays_down_and_nothing_is_wider(desks):
    engaged("segment:finance")
    released("segment:finance")
    page = desks.open_desk(person("operator"), **PHONE).open("/")

    page.get_by_role("link", name="Engage a switch").tap()
    expect(page.get_by_text("Suggested switches")).to_be_focused()
    page.get_by_role("dialog").get_by_role("link", name="segment:finance").tap()
    expect(page.get_by_role("heading", name="Engage a switch")).to_be_focused()

    assert page.evaluate("document.getElementById('dialog').scrollWidth") <= 390
    expect(page.get_by_role("radio", name="Again: OpenAI 5xx")).to_be_visible()


def test_palette_and_the_way_back_work_by_touch(desks):
    page = desks.open_desk(person("operator"), **PHONE).open("/")

    page.get_by_role("link", name="Search or run a command").tap()
    page.locator("#palette-q").fill("engage feature:nl2sql")
    page.locator("#palette-list").get_by_text("Engage feature:nl2sql…").tap()
    page.locator("label").filter(has_text="Load or cost rising without limit").tap()
    page.get_by_role("button", name="Engage feature:nl2sql").tap()
    page.get_by_role("button", name="Done").tap()
    page.locator("[data-undo-toast]").get_by_role("button", name="Undo engaging").tap()

    expect(page.locator("#toasts")).to_contain_text("Undone: feature:nl2sql")
