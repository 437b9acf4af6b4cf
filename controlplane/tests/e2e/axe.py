"""axe-core in the page that a browser shows."""

from collections.abc import Sequence
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
# Begun in one call and asked for in another, so that two windows are judged at once. Nothing is
# fetched again for it (`preload`): no rule that is judged here needs that.
_BEGIN = """only => { window.judged = (async () => {
  // Whatever moves has another colour half-way.
  document.getAnimations().forEach(one => { try { one.finish() } catch { one.cancel() } });
  const how = {runOnly: only, resultTypes: ["violations"], preload: false};
  const done = await axe.run(document, how);
  return done.violations.flatMap(one => one.nodes.map(node => ({
    rule: one.id, where: node.target.join(" "), html: node.html.slice(0, 160),
    why: (node.any.concat(node.all, node.none)[0] || {message: one.help}).message})));
})() }"""
_END = "() => window.judged"
# What is folded is not judged: some of it is opened, and rows of one list are alike. The sticky
# foot of an open dialog covers a part of what is scrolled under it: small targets to axe.
_UNFOLD = """() => {
  [...document.querySelectorAll("#main details:not([open])")].slice(0, 4)
    .forEach(one => { one.open = true });
  document.querySelectorAll("dialog[open] .form-foot")
    .forEach(one => { one.style.position = "static" });
}"""
_SCRIPT = SOURCE.read_text() if SOURCE.exists() else ""
Faults = dict[str, list[str]]


def judge(page: Page, faults: Faults, turns: Turns = ALL_TURNS) -> None:
    """Add the page's accessibility faults: light and dark, wide and narrow.

    A fault on several pages is listed once, with its pages.
    """
    _judge([page], faults, turns)


def format_faults(faults: Faults) -> str:
    return "\n".join(f"{said}, {len(paths)} pages: {paths[0]}" for said, paths in faults.items())


def check_pages(
    windows: Sequence[Page], paths: Sequence[str], url: str, turns: Turns = ALL_TURNS
) -> str:
    """Return axe-core's findings on these pages as text; empty if there are none.

    The pages are divided among the windows, each of a context of its own, because axe keeps a whole
    processor busy.
    """
    faults: Faults = {}
    for at in range(0, len(paths), len(windows)):
        shown = dict(zip(paths[at : at + len(windows)], windows, strict=False))
        for path, page in shown.items():
            page.goto(f"{url}{path}")
        _judge(list(shown.values()), faults, turns)
    return format_faults(faults)


def _judge(windows: Sequence[Page], faults: Faults, turns: Turns) -> None:
    for page in windows:
        page.evaluate(_SCRIPT)
        page.evaluate(_UNFOLD)
    for theme, size, only in turns:
        for page in windows:
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size(size)
            page.evaluate(_BEGIN, only)
        for page in windows:
            path = page.evaluate("location.pathname + location.search")
            for one in page.evaluate(_END):
                finding = f"{one['rule']}: {one['why']}\n    {one['html']}\n    "
                faults.setdefault(f"{finding}{theme}, {size['width']}", []).append(path)
