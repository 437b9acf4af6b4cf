"""Keyboard navigation: moves by Tab and records stops without a visible focus."""

from typing import Any

from playwright.sync_api import Locator, Page, expect

from switches.tests.e2e.tap_guard import await_taps

_MOUSELESS = """() => { for (const kind of ['mousedown', 'pointerdown', 'touchstart'])
  document.addEventListener(kind, () => { window.somebodyHasAMouse = true }, true) }"""
_HERE = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const shown = one.closest('label, summary, a, button') || one;
  const style = getComputedStyle(one), outer = getComputedStyle(shown);
  const box = one.getBoundingClientRect();
  const seen = s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1
    || s.boxShadow !== 'none';
  // A card's own button is hidden: its face has the outline. A drawing has strokes instead.
  const face = one.nextElementSibling?.matches('.card-choice__face') && one.nextElementSibling;
  const drawn = one.querySelector(':scope > .node__box');
  return {what: `${one.tagName} ${(one.getAttribute('aria-label') || one.textContent
    || one.name || '').trim().slice(0, 40)}`,
    seen: seen(style) || seen(outer) || Boolean(face) && seen(getComputedStyle(face))
      || Boolean(drawn) && parseFloat(getComputedStyle(drawn).strokeWidth) >= 4,
    inside: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth};
}"""
_IS = "(one) => one === document.activeElement || one.contains(document.activeElement)"
MAX_STOPS = 90


class Keys:
    def __init__(self, page: Page) -> None:
        self.page = page
        page.add_init_script(f"({_MOUSELESS})()")
        self.unseen: list[str] = []

    def open(self, url: str) -> Page:
        self.page.goto(url)
        self.page.wait_for_load_state()
        return self.page

    def to(self, wanted: Locator) -> None:
        """Press Tab until the element has the focus; fail if it never gets it."""
        expect(wanted).to_be_visible()
        for _ in range(MAX_STOPS):
            if wanted.evaluate(_IS):
                return
            self.page.keyboard.press("Tab")
            self._look()
        raise AssertionError(f"Tab does not reach {wanted}")

    def press(self, wanted: Locator, key: str = "Enter") -> None:
        self.to(wanted)
        await_taps(self.page)
        self.page.keyboard.press(key)

    def write(self, wanted: Locator, text: str) -> None:
        self.to(wanted)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)

    def assert_all_was_seen(self) -> None:
        assert not self.unseen, f"no focus is seen at {self.unseen}"
        assert not self.page.evaluate("window.somebodyHasAMouse || false")

    def _look(self) -> None:
        here: dict[str, Any] | None = self.page.evaluate(_HERE)
        if here and not (here["seen"] and here["inside"]):
            self.unseen.append(f"{here['what']}{'' if here['inside'] else ' (off the screen)'}")
