"""Record the animated picture of the README from a running `make demo`.

    DEMO_SCENARIO=off make demo     # in a fresh data directory, so that no alert holds the ramp
    .venv/bin/python controlplane/documentation/record_demo.py http://127.0.0.1:8000 PASSWORD

Signs in as `admin`, engages `feature:nl2sql`, waits until every instance has applied it, and
releases it by a ramp. Writes `docs/images/demo.webp` and a still, `docs/images/demo.png`.
"""

import argparse
import io
import sys
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Locator, Page, expect, sync_playwright

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SWITCH = "feature:nl2sql"
SIZE = (480, 640)
"""Size of a picture whose text is legible on a phone, too."""
REASON = "OpenAI 5xx on completions since 02:10, INC-4411"
SAFE_NOW = "Vendor reports recovery, 5xx below 0.1 % for 20 minutes"
DWELL = "8s"
"""Time at each step of the recorded ramp; the default is five minutes."""

HIDE_TOASTS = """addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.textContent = ".toasts { display: none }";
  document.head.append(style);
})"""


class Film:
    """Frames of a page with the milliseconds that each is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def shoot(self, milliseconds: int, pressed: Locator | None = None) -> None:
        """Add the page as it is, with a ring around the center of `pressed`."""
        shot = Image.open(io.BytesIO(self.page.screenshot(animations="disabled"))).convert("RGB")
        box = pressed.bounding_box() if pressed else None
        if box:
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            ImageDraw.Draw(shot).ellipse(
                (x - 24, y - 24, x + 24, y + 24), outline="orange", width=5
            )
        if self.frames and shot.tobytes() == self.frames[-1].tobytes():
            self.durations[-1] += milliseconds
            return
        self.frames.append(shot)
        self.durations.append(milliseconds)

    def click(self, button: Locator) -> None:
        self.shoot(500, button)
        button.click()

    def type(self, field: Locator, text: str) -> None:
        for end in range(12, len(text) + 12, 12):
            field.fill(text[:end])
            self.shoot(120)

    def save(self) -> None:
        self.frames[0].save(
            IMAGES / "demo.webp",
            save_all=True,
            append_images=self.frames[1:],
            duration=self.durations,
            loop=0,
            lossless=True,
            method=6,
        )


def sign_in(page: Page, password: str) -> None:
    page.goto("/sign-in/")
    page.locator("[name=username]").fill("admin")
    page.locator("[name=password]").fill(password)
    page.locator("[name=password]").press("Enter")
    page.wait_for_url("/")


def engage(page: Page, film: Film) -> None:
    page.goto(f"/switches/{SWITCH.replace(':', '/')}/")
    film.shoot(1000)
    film.click(page.get_by_role("link", name=f"Engage {SWITCH}"))
    dialog = page.locator("#dialog")
    reason = dialog.get_by_label("Reason", exact=True)
    reason.scroll_into_view_if_needed()
    page.wait_for_timeout(1000)
    film.type(reason, REASON)
    page.wait_for_timeout(1000)
    film.shoot(900)
    film.click(dialog.locator("form[data-engage] .button--stop"))
    expect(page.get_by_role("button", name="Done")).to_be_visible()
    film.shoot(900)
    expect(dialog.get_by_text("Applied by all 3 reporting instances", exact=True)).to_be_visible()
    film.shoot(2200)
    film.frames[-1].save(IMAGES / "demo.png", optimize=True)
    film.click(page.get_by_role("button", name="Done"))
    page.wait_for_timeout(500)
    film.shoot(800)


def release(page: Page, film: Film) -> None:
    film.click(page.get_by_role("link", name="Release").first)
    dialog = page.locator("#dialog")
    edit = dialog.get_by_text("Edit plan", exact=True)
    edit.click()
    for step in range(3):
        dialog.locator(f"[name=step-{step}-dwell]").fill(DWELL)
    dialog.locator("[name=all-new]").select_option("breaker")
    dialog.get_by_role("button", name="Add").last.click()
    dialog.locator("[name=all-gate-0-dependency]").select_option("core->oracle")
    edit.click()
    film.type(dialog.get_by_label("Why it is safe now"), SAFE_NOW)
    page.wait_for_timeout(1000)
    film.shoot(900)
    film.click(dialog.get_by_role("button", name="Start ramp"))


def follow_ramp(page: Page, film: Film) -> None:
    """Shoot each step once its gate has passed, and the released switch."""
    for percent in (5, 25):
        expect(page.get_by_text(f"Ramping {percent} %").first).to_be_visible(timeout=60_000)
        page.evaluate("scrollTo(0, 0)")
        film.shoot(600)
        expect(page.locator("[open] .gate__verdict").get_by_text("Pass", exact=True)).to_be_visible(
            timeout=60_000
        )
        film.shoot(1200)
    expect(page).to_have_title(f"{SWITCH}: released · development", timeout=60_000)
    page.wait_for_timeout(500)
    film.shoot(2200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="address of the console")
    parser.add_argument("password", help="password of the user admin")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.chromium, args=["--no-sandbox"]
        )
        width, height = SIZE
        context = browser.new_context(
            base_url=options.url, viewport={"width": width, "height": height}, bypass_csp=True
        )
        context.add_init_script(HIDE_TOASTS)
        page = context.new_page()
        sign_in(page, options.password)
        film = Film(page)
        engage(page, film)
        release(page, film)
        follow_ramp(page, film)
        browser.close()
    film.save()
    seconds = sum(film.durations) / 1000
    sys.stdout.write(f"{len(film.frames)} frames, {seconds:.1f} s\n")


if __name__ == "__main__":
    main()
