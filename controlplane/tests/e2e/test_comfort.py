"""Accessibility preferences on the main pages: larger text, less motion, system colors."""

import shutil

import pytest

from controlplane.tests.browser import FLAGS, Desks
from controlplane.tests.e2e import pages
from controlplane.tests.e2e.test_reflow import WIDE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
DESK = {"width": 1280, "height": 900}
# Words that are wider than the box that hides what hangs over: without an ellipsis or a scrollbar.
CUT = """() => [...document.querySelectorAll("body *")].filter(one => {
    const style = getComputedStyle(one), box = one.getBoundingClientRect();
    const hides = ["hidden", "clip"].includes(style.overflowX);
    return hides && style.textOverflow !== "ellipsis" && box.width > 2 && box.height > 2
      && (one.scrollWidth > one.clientWidth + 1) && one.innerText?.trim()
      && one.checkVisibility({visibilityProperty: true});
  }).slice(0, 3).map(one => `${one.tagName}.${one.className}`).join(", ")"""
MOVING = """() => {
  const all = [...document.querySelectorAll("*")].flatMap(one =>
    ["", "::before", "::after"].map(part => getComputedStyle(one, part || null)));
  const longest = text => Math.max(...text.split(",").map(one =>
    parseFloat(one) * (one.trim().endsWith("ms") ? 1 : 1000)));
  return {
    longest: Math.max(...all.map(style =>
      Math.max(longest(style.animationDuration), longest(style.transitionDuration)))),
    endless: all.filter(style =>
      style.animationName !== "none" && style.animationIterationCount === "infinite").length,
    smooth: all.filter(style => style.scrollBehavior === "smooth").length,
  };
}"""
# Grounds are gone there: a state or a button without words and a frame would be nothing.
BARE = """names => [...document.querySelectorAll(names)].filter(one => {
    if (!one.checkVisibility({visibilityProperty: true})) return false;
    const style = getComputedStyle(one);
    const framed = parseFloat(style.borderTopWidth) > 0 && style.borderTopStyle !== "none"
      || parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none";
    const said = one.innerText?.trim() || one.getAttribute("aria-label");
    return !framed || !said;
  }).slice(0, 3).map(one => `${one.tagName}.${one.className} ${one.innerText?.trim()}`)"""
FRAMED = ".state, .button, .alarm, .degraded, .note, .environment, .nav .count"


@pytest.fixture
def large(chromium, live_server):
    """Windows of a browser with a default font size of 32 pixels instead of 16.

    It is set as a person would, so that media queries in letter widths follow it too.
    """
    # What the library says of the pointer is said by the same flag, of which the last one counts.
    told = (
        "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4,"
        "defaultFontSize=32,defaultFixedFontSize=26"
    )
    path = shutil.which("chromium") or "/usr/bin/chromium"
    flags = [*FLAGS, f"--blink-settings={told}"]
    browser = chromium.browser_type.launch(executable_path=path, args=flags)
    opened = Desks(browser, live_server.url)
    yield opened
    opened.close()
    browser.close()


def test_text_of_twice_the_size_fits_and_nothing_is_cut(large, night):
    page = (desk := large.open_desk(night, viewport=DESK)).page
    wrong = {}
    for path in pages.MAIN:
        page.goto(f"{desk.url}{path}")
        if found := page.evaluate(WIDE) or page.evaluate(CUT):
            wrong[path] = found

    assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "32px"
    assert not wrong, wrong


def test_nothing_is_cut_on_a_narrow_screen(rounds, night):
    page = (desk := rounds.open_desk(night, viewport={"width": 320, "height": 640})).page
    wrong = {}
    for path in pages.MAIN:
        page.goto(f"{desk.url}{path}")
        if found := page.evaluate(CUT):
            wrong[path] = found

    assert not wrong, wrong


def test_nothing_moves_for_whoever_asked_for_less_motion(rounds, night):
    page = (desk := rounds.open_desk(night, reduced_motion="reduce")).page
    moving = {}
    for path in pages.MAIN:
        page.goto(f"{desk.url}{path}")
        found = page.evaluate(MOVING)
        if found["longest"] > 10 or found["endless"] or found["smooth"]:
            moving[path] = found

    assert not moving, moving


def test_states_are_told_by_words_and_frames_where_the_system_has_the_colours(rounds, night):
    page = (desk := rounds.open_desk(night, forced_colors="active")).page
    bare = {}
    for path in pages.MAIN:
        page.goto(f"{desk.url}{path}")
        if found := page.evaluate(BARE, FRAMED):
            bare[path] = found

    assert not bare, bare
    page.goto(f"{desk.url}/")
    assert page.evaluate("matchMedia('(forced-colors: active)').matches")
    assert page.locator(".state").count() > 3
