"""A kill switch end to end, with real processes.

A browser engages it, and no call queued for a hanging provider reaches that provider.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from controlplane.tests.browser import Desk
from controlplane.tests.installation import PASSWORD, ROOT, running, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]
RUNNING, QUEUED = 20, 200
P99_SECONDS = 0.05
"""Measured from the moment the client learns that the switch is engaged."""


@contextmanager
def program(name: str, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    path = os.pathsep.join((str(ROOT / "client"), os.environ.get("PYTHONPATH", "")))
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.cancellation.programs.{name}", *arguments],
        env={**os.environ, **variables, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def engage_chat(page: Page) -> None:
    page.wait_for_load_state()  # Before that, no script listens for the key.
    page.keyboard.press("e")
    page.get_by_label("Scope", exact=True).select_option("feature")
    page.get_by_label("Key", exact=True).fill("chat")
    page.get_by_label("Reason", exact=True).fill("the provider leaks prompts, INC-4411")
    page.get_by_role("button", name="Engage feature:chat").click()


# Two hundred threads take turns for some 45 ms: on a slow machine it tells of that, not of us.
@pytest.mark.parametrize("kind", [pytest.param("tasks", marks=pytest.mark.smoke), "threads"])
def test_no_waiting_call_reaches_the_provider_after_a_kill(chromium, tmp_path, kind):
    log = Path(tmp_path, "provider.log")
    log.touch()
    with (
        running(tmp_path / "var") as installation,
        program("provider", str(log)) as provider,
    ):
        told = {
            "SWITCHGEAR_URL": installation.url,
            "SWITCHGEAR_TOKEN": installation.token("switches:read", "report:write"),
            "SWITCHGEAR_STATE_DIR": str(tmp_path / "state"),
        }
        url = f"http://127.0.0.1:{provider.stdout.readline().strip()}"
        desk = Desk(chromium.new_context(viewport={"width": 1280, "height": 900}), installation.url)
        page = desk.open("/")
        page.get_by_label("User name").fill("admin")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("heading", name="Nothing is engaged").wait_for()
        with program("chat", url, kind, **told) as chat:
            waiting = json.loads(chat.stdout.readline())
            wait_until(lambda: len(log.read_text().splitlines()) == RUNNING, 10, log.read_text)
            engage_chat(page)
            refused = json.loads(chat.stdout.readline())
            applied = page.locator("#effect-dialog")
            expect(applied).to_contain_text("Applied by the only reporting instance")
            page.screenshot(path=tmp_path / f"{kind}.png")
        desk.context.close()

    seconds = refused["seconds"]
    p99 = seconds[int(len(seconds) * 0.99) - 1]
    print(
        f"{kind}: {len(seconds)} refused, p99 {p99 * 1e3:.1f} ms, worst {seconds[-1] * 1e3:.1f} ms"
    )
    assert waiting == {"queued": QUEUED, "way": "stream"}
    assert refused["errors"] == {"SwitchEngaged": QUEUED}
    assert len(log.read_text().splitlines()) == RUNNING
    assert p99 < P99_SECONDS
