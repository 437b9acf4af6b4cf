"""Taps on a phone, and the moment after a swap of the dialog in which the browser ignores them."""

from playwright.sync_api import Locator, Page, expect

PHONE = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}


def await_taps(page: Page) -> None:
    """Wait until taps and keys press buttons again; clicks of Playwright wait by themselves."""
    expect(page.locator("[data-taps-ignored]")).to_have_count(0)


def tap_twice(page: Page, x: float, y: float, pause_ms: int) -> None:
    page.touchscreen.tap(x, y)
    page.wait_for_timeout(pause_ms)
    page.touchscreen.tap(x, y)


def center(target: Locator) -> tuple[float, float]:
    box = target.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
