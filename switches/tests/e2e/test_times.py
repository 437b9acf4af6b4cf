"""Every moment in the person's own time, and in UTC for whoever asks."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.tests.screens import engaged

pytestmark = pytest.mark.e2e


def in_seoul():
    user = person("operator")
    user.time_zone = "Asia/Seoul"
    user.save(update_fields=["time_zone"])
    return user


def test_u_tells_every_moment_in_utc_and_back(desks):
    engaged("segment:finance")
    page = desks.of(in_seoul()).open("/switches/segment/finance/")
    exact = page.locator("time", has_text=re.compile(r"\d\d:\d\d:\d\d")).first
    expect(exact).to_contain_text("KST")

    page.keyboard.press("u")
    expect(exact).to_contain_text("UTC")
    assert exact.inner_text().removesuffix(" UTC") in exact.get_attribute("data-utc")
    page.goto(page.url.replace("/switches/segment/finance/", "/audit/"))
    expect(page.locator("time").first).to_contain_text("UTC")
    page.get_by_role("button", name="Tell them in UTC").click()

    expect(page.locator("time").first).to_contain_text("KST")


def test_what_a_refresh_brings_is_told_in_utc_too(desks):
    engaged("segment:finance")
    page = desks.of(in_seoul()).open("/")
    page.keyboard.press("u")
    expect(page.locator("tr time").first).to_contain_text("UTC")

    engaged("segment:other")

    row = page.locator("tr[data-switch='segment:other']")
    expect(row.locator("time").first).to_contain_text("UTC")
    expect(page.locator("[data-as-of]")).to_contain_text("UTC")
