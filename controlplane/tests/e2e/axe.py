"""axe-core in the page that a browser shows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page

SOURCE = Path(settings.BASE_DIR) / "static/node_modules/axe-core/axe.min.js"
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
needs_axe = pytest.mark.skipif(not SOURCE.exists(), reason="axe-core is not installed")
# Colours depend on nothing but the theme; all the rest on the width.
Turns = tuple[tuple[str, dict[str, int], dict[str, Any]], ...]
ALL_TURNS: Turns = (
    ("light", DESK, {"type": "tag", "values": TAGS}),
    ("light", PHONE, {"type": "tag", "values": TAGS}),
    ("dark", PHONE, {"type": "rule", "values": ["color-contrast"]}),
    ("dark", DESK, {"type": "rule", "values": ["color-contrast"]}),
)
ONE_TURN = ALL_TURNS[:1]
_RUN = """async (only) => {
  // Whatever moves has another colour half-way.
  document.getAnimations().forEach(one => { try { one.finish() } catch { one.cancel() } });
  const done = await axe.run(document, {runOnly: only, resultTypes: ["violations"]});
  return done.violations.flatMap(one => one.nodes.map(node => ({
    rule: one.id, where: node.target.join(" "), html: node.html.slice(0, 160),
    why: (node.any.concat(node.all, node.none)[0] || {message: one.help}).message})));
}"""
Faults = dict[str, list[str]]


def judge(page: Page, faults: Faults, turns: Turns = ALL_TURNS) -> None:
    """Add what is against the rules on the page as it stands: light and dark, wide and narrow.

    The same fault on many pages is one, with the pages that have it.
    """
    path = page.evaluate("location.pathname + location.search")
    page.evaluate(SOURCE.read_text())
    for theme, size, only in turns:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size(size)
        for one in page.evaluate(_RUN, only):
            said = f"{one['rule']}: {one['why']}\n    {one['html']}\n    {theme}, {size['width']}"
            faults.setdefault(said, []).append(path)


def told(faults: Faults) -> str:
    return "\n".join(f"{said}, {len(paths)} pages: {paths[0]}" for said, paths in faults.items())


def of(page: Page, paths: Iterable[str], url: str, turns: Turns = ALL_TURNS) -> str:
    """What is wrong with these pages, to read; nothing if nothing is."""
    faults: Faults = {}
    for path in paths:
        page.goto(f"{url}{path}")
        judge(page, faults, turns)
    return told(faults)
