"""The state of a page is in its URL: saved, shared, reloaded and restored."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e


def test_view_is_saved_under_a_name_and_forgotten(desks):
    engaged("segment:finance")
    engaged("feature:mail")
    page = desks.open_desk(person("viewer")).open("/?scope=feature&page=1")

    page.get_by_text("Save this view").click()
    page.get_by_label("Name of this view").fill("features")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="features")).to_be_focused()
    page.goto(page.url.split("?")[0])
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("link", name="features").click()

    expect(page).to_have_url(re.compile(r"/\?scope=feature$"))
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="features")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Delete features").click()
    expect(page.get_by_role("link", name="features")).to_have_count(0)


@pytest.mark.parametrize("path", ["/?scope=feature", "/breakers/?q=core", "/slos/?q=core"])
def test_saving_a_view_stands_below_its_filters_and_outlives_a_refresh(desks, path):
    engaged("feature:mail")
    page = desks.open_desk(person("viewer")).open(path)
    page.get_by_text("Save this view").click()
    page.get_by_label("Name of this view").fill("mine")

    with page.expect_response(lambda one: "switchgear-background" in one.request.headers):
        page.evaluate("document.body.dispatchEvent(new Event('refresh'))")
    page.wait_for_timeout(300)

    expect(page.get_by_label("Name of this view")).to_have_value("mine")
    expect(page.get_by_label("Name of this view")).to_be_focused()
    page.keyboard.press("Enter")
    saved = page.get_by_role("link", name="mine")
    expect(saved).to_be_focused()
    assert saved.bounding_box()["y"] > page.locator("h1").bounding_box()["y"]


def test_open_dialog_is_in_the_address_and_back_closes_it(desks):
    engaged("segment:finance")
    page = desks.open_desk(person("operator")).open("/?scope=segment")

    page.get_by_role("link", name="Release segment:finance").click()
    expect(page.get_by_label("Why it is safe now")).to_be_visible()
    expect(page).to_have_url(re.compile(r"#dialog=/switches/segment/finance/release/$"))
    page.reload()
    expect(page.get_by_label("Why it is safe now")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"/\?scope=segment$"))
    page.go_forward()
    expect(page.get_by_label("Why it is safe now")).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"/\?scope=segment$"))


def test_address_made_up_elsewhere_opens_nothing(desks):
    page = desks.open_desk(person("operator")).open("/#dialog=/api/v1/switches/")
    expect(page.get_by_role("link", name="Engage a switch")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/$"))

    page.goto(page.url.rstrip("/") + "/audit/#dialog=//evil.example/x")

    expect(page).to_have_url(re.compile(r"/audit/$"))
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_opened_rows_are_in_the_address_and_come_back(desks):
    kim = engaged("segment:finance")
    engaged("feature:mail", by=kim)
    page = desks.open_desk(kim).open("/audit/?action=switch.engaged")
    rows = page.locator(".audit-list details")
    expect(rows.first).to_be_visible()

    rows.first.locator("summary").first.click()
    rows.nth(1).locator("summary").first.press("Enter")
    expect(page).to_have_url(re.compile(r"/audit/\?action=switch\.engaged#open=row-\d+,row-\d+$"))
    page.reload()
    expect(rows.first).to_have_attribute("open", "")
    expect(rows.nth(1)).to_have_attribute("open", "")
    rows.first.locator("summary").first.click()
    rows.nth(1).locator("summary").first.click()

    expect(page).to_have_url(re.compile(r"/audit/\?action=switch\.engaged$"))


def test_opened_row_stays_in_the_address_beside_a_dialog(desks):
    kim = engaged("segment:finance")
    page = desks.open_desk(kim).open("/switches/segment/finance/")
    row = page.locator(".audit-list details").first

    row.locator("summary").first.click()
    expect(page).to_have_url(re.compile(r"#open=entry-\d+-more$"))
    page.get_by_role("link", name="Extend", exact=True).click()
    expect(page).to_have_url(re.compile(r"#dialog=/switches/segment/finance/extend/$"))
    expect(page.get_by_label("Reason", exact=True)).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"#open=entry-\d+-more$"))
    expect(row).to_have_attribute("open", "")
