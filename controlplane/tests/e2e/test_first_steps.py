"""A new team's first steps on a real installation, with a real client process and a real drill."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from controlplane.notify.delivery.tests.fake_slack import fake_slack
from controlplane.tests.browser import Desk
from controlplane.tests.installation import PASSWORD, ROOT, Installation, running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SERVICE = """
import time
from switchgear import Switchgear
gear = Switchgear.from_env()
while True:
    gear.allowed(feature="chat")
    time.sleep(0.2)
"""
SLOW = 60_000


@contextmanager
def service(installation: Installation, folder: str) -> Iterator[None]:
    """Run the service of the first step's snippet, named checkout."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "client"),
            "SWITCHGEAR_URL": installation.url,
            "SWITCHGEAR_TOKEN": installation.token("switches:read", "report:write"),
            "SWITCHGEAR_SERVICE": "checkout",
            "SWITCHGEAR_STATE_DIR": folder,
        },
    )
    try:
        yield
    finally:
        process.kill()
        process.wait(10)


def sign_in(page: Page) -> None:
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("heading", name="Nothing is engaged").wait_for()


def expect_step(page: Page, name: str, fact: str) -> None:
    step = page.locator(f"#step-{name}")
    expect(step).to_contain_text("Done", timeout=SLOW)
    expect(step).to_contain_text(fact)


def test_four_steps_are_ticked_by_evidence_and_disappear(chromium, tmp_path):
    with (
        fake_slack() as workspace,
        running(tmp_path / "var", SLACK_WEBHOOK_URL=f"{workspace.url}/webhook") as installation,
    ):
        desk = Desk(chromium.new_context(viewport={"width": 1440, "height": 900}), installation.url)
        page = desk.open("/")
        sign_in(page)
        state = desk.context.storage_state()
        phone = chromium.new_context(viewport={"width": 390, "height": 844}, storage_state=state)
        mobile = phone.new_page()
        for one in (page, mobile):
            one.goto(installation.url)
            steps = one.locator("#first-steps")
            expect(steps).to_contain_text("0 of 4 done")
            expect(steps).to_contain_text(f"export SWITCHGEAR_URL={installation.url}")
            assert one.evaluate("document.documentElement.scrollWidth <= innerWidth")

        mobile.goto(f"{installation.url}/first-steps/")
        with service(installation, str(tmp_path / "state")):
            expect_step(page, "service", "checkout last reported")
            page.locator("#first-steps").get_by_role("link", name="Engage feature:chat").click()
            page.get_by_label("Reason", exact=True).fill("first try in staging, INC-1")
            page.get_by_role("button", name="Engage feature:chat").click()
            page.goto(installation.url)
            expect_step(page, "switch", "feature:chat was engaged by user:admin")
            expect_step(page, "notifications", "was delivered")

            page.get_by_role("link", name="Add drill instances").click()
            page.get_by_role("combobox", name="Instances").fill("checkout/*")
            page.get_by_role("button", name="Add instances").click()
            page.get_by_role("link", name="Start a drill").click()
            page.get_by_role("combobox", name="Switch").fill("feature:search")
            page.get_by_label("Reason", exact=True).fill("first drill of the team")
            page.get_by_role("button", name="Start drill").click()
            expect_step(mobile, "drill", "The drill of feature:search passed on 1 instance")
            expect(mobile.locator("#first-steps")).to_contain_text("4 of 4 done")
            mobile.screenshot(path=tmp_path / "done.png", full_page=True)
            expect(page.locator("#first-steps")).to_have_count(0, timeout=SLOW)
        mobile.goto(installation.url)
        expect(mobile.locator("#first-steps")).to_have_count(0)
        phone.close()
        desk.context.close()
    assert not desk.complaints
