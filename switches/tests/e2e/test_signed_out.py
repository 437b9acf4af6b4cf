"""A session ended elsewhere: a notice beside the input, and fewer polls."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person

pytestmark = pytest.mark.e2e


def test_signed_out_page_says_so_above_nothing_and_hardly_asks(desks):
    desk = desks.open_desk(person("operator"), viewport={"width": 1280, "height": 600})
    page = desk.open("/")
    page.keyboard.press("e")
    page.get_by_label("Reason", exact=True).fill("errors")
    desk.context.clear_cookies()

    toast = page.locator("dialog .toast", has_text="You are signed out")
    expect(toast).to_be_visible()
    button = page.get_by_role("dialog").locator("form[data-engage] .button--stop")
    toast_box, pressed = toast.bounding_box(), button.bounding_box()
    assert pressed["y"] + pressed["height"] <= toast_box["y"]
    requests_made = []
    page.on("request", lambda one: requests_made.append(one.url))
    page.wait_for_timeout(5_000)

    assert len(requests_made) <= 2, requests_made
