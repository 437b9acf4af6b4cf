"""Pages do not scroll sideways at 320 pixels, the width of a desktop at 400 % zoom."""

import pytest

from controlplane.tests.e2e import pages

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? null
  : [...document.querySelectorAll("main *")].filter(one => {
      const box = one.getBoundingClientRect();
      return box.width && box.right > innerWidth + 1 && !one.closest(".scrolls, pre, nav, canvas");
    }).slice(0, 3).map(one => `${one.tagName}.${one.className}`).join(", ") || "something"
"""


def test_no_page_of_a_bad_night_scrolls_sideways(rounds, night):
    page = (desk := rounds.open_desk(night, viewport={"width": 320, "height": 640})).page
    wide = {}
    for group in pages.find_pages(night).values():
        page.goto(f"{desk.url}{group[0]}")
        if which := page.evaluate(WIDE):
            wide[group[0]] = which

    assert wide == {}
