"""The moment after a swap of the dialog in which the browser ignores taps, Enter and Space."""

from playwright.sync_api import Page, expect


def await_taps(page: Page) -> None:
    """Wait until taps and keys press buttons again; clicks of Playwright wait by themselves."""
    expect(page.locator("[data-taps-ignored]")).to_have_count(0)
