"""Times in the person's zone, and in UTC on request."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.tests.browsers import engaged

pytestmark = pytest.mark.e2e


def in_seoul():
    user = person("operator")
    user.time_zone = "Asia/Seoul"
    user.save(update_fields=["time_zone"])
    return user


def test_u_tells_every_moment_in_utc_and_back(desks):
    engaged("segment:finance")
    page = desks.open_desk(in_seoul()).open("/switches/segment/finance/")
    exact = page.locator("time", has_text=re.compile(r"\d\d:\d\d:\d\d")).first
    expect(exact).to_contain_text("KST")

    page.keyboard.press("u")
    expect(exact).to_contain_text("UTC")
    assert exact.inner_text().removesuffix(" UTC") in exact.get_attribute("data-utc")
    page.goto(page.url.replace("/switches/segment/finance/", "/audit/"))
    expect(page.locator("time").first).to_contain_text("UTC")
    page.get_by_role("button", name="Show in Asia/Seoul").click()

    expect(page.locator("time").first).to_contain_text("KST")


def test_what_a_refresh_brings_is_told_in_utc_too(desks):
    engaged("segment:finance")
    page = desks.open_desk(in_seoul()).open("/")
    page.keyboard.press("u")
    expect(page.locator("tr time").first).to_contain_text("UTC")

    engaged("segment:other")

    row = page.locator("tr[data-switch='segment:other']")
    expect(row.locator("time").first).to_contain_text("UTC")
    expect(page.locator("[data-as-of]")).to_contain_text("UTC")


def test_foot_says_which_zone_is_shown_and_how_to_turn_back(desks):
    page = desks.open_desk(in_seoul()).open("/preferences/")
    foot = page.locator(".page-foot")
    expect(foot).to_contain_text("Times are in Asia/Seoul.")

    foot.get_by_role("button", name="Show in UTC").click()

    expect(foot).to_contain_text("Times are in UTC.")
    expect(foot.get_by_role("button", name="Show in Asia/Seoul")).to_be_focused()
    page.reload()
    expect(foot).to_contain_text("Times are in UTC.")


def test_age_of_the_page_is_told_in_utc_from_the_first(desks):
    page = desks.open_desk(in_seoul()).open("/")
    page.keyboard.press("u")
    page.add_init_script(
        "addEventListener('load', () => { window.first ="
        " document.querySelector('#live [data-as-of]').textContent; })"
    )

    page.reload()

    assert re.search(r"As of \d\d:\d\d:\d\d UTC", page.evaluate("window.first"))


def test_expiry_that_is_to_be_is_told_in_utc_too(desks):
    page = desks.open_desk(in_seoul()).open("/")
    page.keyboard.press("u")

    page.keyboard.press("e")

    cards = page.get_by_role("dialog").locator(".card-choice small time")
    expect(cards).to_have_count(4)
    expect(cards.first).to_contain_text("UTC")
    expect(cards.last).to_contain_text("UTC")
