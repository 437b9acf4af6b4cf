"""Rows of lists: a click anywhere opens the row's main link, and keys move between rows."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e


@pytest.fixture
def board(desks):
    engaged("segment:alpha")
    engaged("segment:beta")
    page = desks.open_desk(person("operator")).open("/")
    expect(page.locator("tr[id^='row-segment-']")).to_have_count(2)
    return page


def test_click_beside_the_link_opens_the_row(board):
    row = board.locator("#row-segment-alpha")
    box = row.bounding_box()

    board.mouse.click(box["x"] + box["width"] / 2, box["y"] + 4)

    board.wait_for_url("**/switches/segment/alpha/")


def test_click_on_a_button_of_the_row_does_only_that(board):
    board.locator("#row-segment-alpha").get_by_role("link", name="Release").first.click()

    expect(board.locator("#dialog")).to_be_visible()
    assert board.url.split("#")[0].endswith("/")


def test_keys_move_between_rows_and_enter_opens(board):
    names = [board.locator("tr[id^='row-']").nth(n).get_attribute("id") for n in (0, 1)]

    board.keyboard.press("j")
    expect(board.locator(f"#{names[0]} a:focus")).to_have_count(1)
    board.keyboard.press("j")
    expect(board.locator(f"#{names[1]} a:focus")).to_have_count(1)
    board.keyboard.press("k")
    expect(board.locator(f"#{names[0]} a:focus")).to_have_count(1)
    board.keyboard.press("Enter")

    board.wait_for_url(f"**/{names[0].removeprefix('row-').replace('-', '/')}/")
