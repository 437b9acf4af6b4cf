"""The dialog's buttons: fully visible on small screens, and at the same place at every step."""

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.rules.tests.factories import create_rule
from switches.tests.browsers import REASON, engaged
from switches.tests.instances import report_checks

pytestmark = pytest.mark.e2e
SIZES = [(320, 568), (320, 640), (390, 844), (568, 320), (844, 390), (1280, 720), (1440, 900)]


def boxes_of(page, *selectors):
    return [page.locator(f"#dialog .form-foot {each}").bounding_box() for each in selectors]


def assert_inside(box, width, height):
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= height


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_engage_and_done_share_a_place_and_undo_is_apart_from_both(desks, width, height):
    report_checks("core/a1", "feature:nl2sql", at=db_now(), per_second=3)
    touch = {"is_mobile": width < 900, "has_touch": width < 900}
    desk = desks.open_desk(person("operator"), viewport={"width": width, "height": height}, **touch)
    page = desk.open("/")
    page.get_by_role("link", name="Engage a switch").click()
    expect(page.locator("#dialog .button--stop")).to_be_visible()
    page.wait_for_timeout(300)  # the dialog rises
    (before,) = boxes_of(page, ".button--stop")

    page.locator(".suggested-switches a").first.click()
    page.get_by_label("Reason", exact=True).fill(REASON)
    expect(page.locator("#plan")).to_contain_text("Every service will be told to stop")
    engage, cancel = boxes_of(page, ".button--stop", "[data-close]")
    page.get_by_role("button", name="Engage feature:nl2sql").click()
    expect(page.get_by_role("button", name="Done")).to_be_visible()
    done, undo = boxes_of(page, "[data-focus]", "[data-undo] button")
    page.wait_for_timeout(2_500)  # the effect is polled meanwhile
    later = boxes_of(page, "[data-focus]", "[data-undo] button")

    for box in (before, engage, cancel, done, undo):
        assert_inside(box, width, height)
    bottom = before["y"] + before["height"]
    for box in (engage, done):
        assert abs(box["y"] + box["height"] - bottom) < 1
        assert abs(box["x"] + box["width"] - before["x"] - before["width"]) < 1
    assert undo["x"] + undo["width"] <= min(engage["x"], done["x"])
    assert [done["x"], done["y"], undo["x"], undo["y"]] == [
        later[0]["x"],
        later[0]["y"],
        later[1]["x"],
        later[1]["y"],
    ]


def test_done_keeps_its_place_when_undo_expires(desks):
    page = desks.open_desk(person("operator"), viewport={"width": 390, "height": 844}).open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()
    expect(page.locator("#dialog [data-undo]")).to_be_visible()
    before = boxes_of(page, "[data-focus]")

    page.locator("#dialog [data-undo]").evaluate("undo => { undo.dataset.gone = 0; }")

    expect(page.locator("#dialog [data-undo]")).to_be_hidden()
    assert boxes_of(page, "[data-focus]") == before


def test_refusal_shows_one_red_button_and_opening_the_glass_replaces_it(desks):
    create_rule("exclusive", "segment:*", name="one at a time")
    engaged("segment:first")
    page = desks.open_desk(person("operator", "lee")).open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("second")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:second").click()
    expect(page.locator("#refused")).to_be_visible()
    red = page.locator("#dialog .button--stop:visible")
    expect(red).to_have_count(1)
    (before,) = boxes_of(page, ".button--stop:visible")

    page.locator("#glass > summary").click()

    expect(red).to_have_count(1)
    expect(red).to_have_text("Break glass and engage")
    (after,) = boxes_of(page, ".button--stop:visible")
    assert abs(after["y"] - before["y"]) < 1
