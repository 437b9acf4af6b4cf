"""Pages, tables and text fit a phone, and 320 pixels: a desktop at 400 % zoom."""

import pytest

from controlplane.tests.e2e import pages

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SIZES = ((320, 640), (390, 844), (844, 390), (1440, 900))
API_REFERENCE = ("/api/docs/", "/api/docs/switches/")
WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? null
  : [...document.querySelectorAll("main *")].filter(one => {
      const box = one.getBoundingClientRect();
      return box.width && box.right > innerWidth + 1 && !one.closest(".scrolls, pre, nav, canvas");
    }).slice(0, 3).map(one => `${one.tagName}.${one.className}`).join(", ") || "something"
"""
CUT = """() => {
  document.querySelectorAll("main details").forEach(one => { one.open = true; });
  const hides = one => one.scrollWidth > one.clientWidth + 1
    && getComputedStyle(one).overflowX !== "visible";
  return [...document.querySelectorAll("main table")].filter(table => {
    for (let one = table; one.tagName !== "MAIN"; one = one.parentElement) {
      if (hides(one)) return true;
    }
    return false;
  }).map(table => `table.${table.className}`).join(", ");
}"""
"""Tables whose right edge is hidden until a part of the page is scrolled sideways."""

NARROW = """() => {
  const columns = new Set();
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    let one = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !one.checkVisibility()) continue;
    while (getComputedStyle(one).display.startsWith("inline")) one = one.parentElement;
    columns.add(one);
  }
  const found = [...columns].filter(one => {
    const range = document.createRange();
    range.selectNodeContents(one);
    const { width, height } = range.getBoundingClientRect();
    const isNarrow = width > 1 && width < Math.min(80, innerWidth / 5);
    return isNarrow && height > 6.4 * parseFloat(getComputedStyle(one).fontSize);
  });
  return found.slice(0, 3).map(one => `${one.className}: ${one.innerText.slice(0, 30)}`).join();
}"""
"""Text of more than about four lines in a column narrower than 80 pixels, 64 at a width of 320."""


def test_no_page_of_a_bad_night_scrolls_sideways_or_has_narrow_text(rounds, night):
    page = (desk := rounds.open_desk(night)).page
    seen, found = set(), {}
    for name, path, html in pages.followed(night):
        if name in seen and "<table" not in html:
            continue
        seen.add(name)
        page.goto(f"{desk.url}{path}")
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            if which := page.evaluate(WIDE) or page.evaluate(CUT) or page.evaluate(NARROW):
                found[f"{path} at {width}"] = which

    assert found == {}


@pytest.mark.parametrize("path", API_REFERENCE)
def test_api_reference_uses_the_width_of_a_desktop_and_fits_a_phone(rounds, night, path):
    page = (desk := rounds.open_desk(night, viewport={"width": 1440, "height": 900})).page
    page.goto(f"{desk.url}{path}")
    width = page.evaluate("document.querySelector('h1').parentElement.clientWidth")
    page.set_viewport_size({"width": 320, "height": 640})

    assert width > 1000
    assert page.evaluate(WIDE) is None
