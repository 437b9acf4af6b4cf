"""Printed pages: no navigation, no buttons, black on white."""

import os
from pathlib import Path

import pytest

from controlplane.tests.e2e import pages
from slo.models import Alert

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
A4 = {"width": 718, "height": 1000}  # What the margins leave of the page.
TO_PRESS = (
    ".sidebar, .bars .paused, .toolbar, .skip-link, .button, form, nav, dialog, .toasts,"
    " .page-foot button, [data-copy], .menu, input, select, textarea"
)
SHOWN = """names => [...document.querySelectorAll(names)].filter(one =>
  one.checkVisibility({visibilityProperty: true}) && one.getBoundingClientRect().height > 1
).slice(0, 4).map(one => `${one.tagName}.${one.className}`)"""
# Grounds are white wherever there are words, which have a contrast of 7 at least. A mark without
# words may be black.
PALE = """() => {
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(one => one / 255)
    .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const pale = colour => 1.05 / (light(parts(colour)) + 0.05) < 7;
  const wrong = new Set();
  for (const one of document.querySelectorAll("body, body *")) {
    if (!one.checkVisibility({visibilityProperty: true}) || one.closest("svg, canvas")) continue;
    const style = getComputedStyle(one), name = `${one.tagName}.${one.className}`;
    const ground = parts(style.backgroundColor), holds = one.textContent.trim();
    const is_dark = ground[3] !== 0 && light(ground) < 0.85;
    if (holds && is_dark) wrong.add(`${name} on ${style.backgroundColor}`);
    const words = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (words && pale(style.color)) wrong.add(`${name}: ${style.color}`);
  }
  return [...wrong].slice(0, 5);
}"""


def paths_of(night):
    one = Alert.objects.filter(resolved_at__isnull=False).first() or Alert.objects.get()
    found = pages.find_pages(night)
    return {
        "report": found["report_page"][0],
        "postmortem": f"/alerts/{one.pk}/postmortem/",
        "audit": "/audit/",
        "switch": "/switches/segment/finance/",
        "runbook": "/runbooks/redis-down/",
        "slo": "/slos/core-availability/",
    }


def test_pages_on_paper_are_black_on_white_with_nothing_to_press(rounds, night):
    desk = rounds.open_desk(night, viewport=A4, color_scheme="dark")
    page = desk.page
    wrong = {}
    for name, path in paths_of(night).items():
        page.goto(f"{desk.url}{path}")
        page.wait_for_load_state()
        page.emulate_media(media="print", color_scheme="dark")
        if shown := page.evaluate(SHOWN, TO_PRESS):
            wrong[f"{name} has to press"] = shown
        if pale := page.evaluate(PALE):
            wrong[f"{name} is pale"] = pale
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > A4["width"]:
            wrong[f"{name} is wide"] = wide
        _picture(page, name)

    assert not wrong, wrong


def _picture(page, name):
    """Save a screenshot if the variable SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"paper-{name}.png"), full_page=True)
