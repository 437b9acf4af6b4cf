"""The navigation on narrow screens: the current page, and a hint that there is more."""

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person

pytestmark = pytest.mark.e2e
PHONE = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}
LAPTOP = {"viewport": {"width": 1280, "height": 800}}
LOW = {"viewport": {"width": 1280, "height": 560}}


@pytest.mark.parametrize("path", ["/runbooks/", "/audit/", "/deliveries/"])
def test_phone_shows_the_present_page_in_its_strip(desks, path):
    page = desks.open_desk(person("admin"), **PHONE).open(path)

    expect(page.locator("#nav [aria-current='page']")).to_be_in_viewport(ratio=1)


def test_laptop_shows_every_page_at_once(desks):
    page = desks.open_desk(person("admin"), **LAPTOP).open("/")

    for link in page.locator("#nav a").all():
        expect(link).to_be_in_viewport(ratio=1)
    heights = page.evaluate("[nav.clientHeight, nav.scrollHeight]")
    assert heights[0] == heights[1]


def test_low_window_shows_the_present_page_in_its_list(desks):
    page = desks.open_desk(person("admin"), **LOW).open("/tokens/")

    headings = page.evaluate(
        """() => {
            const list = nav.getBoundingClientRect();
            const here = nav.querySelector("[aria-current='page']").getBoundingClientRect();
            return nav.scrollHeight > nav.clientHeight && here.bottom <= list.bottom;
        }"""
    )
    assert headings
