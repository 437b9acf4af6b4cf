"""Proof of effect and blast radius in a real browser: what is shown follows what instances say."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.tests.installation import PASSWORD, running
from switches.models import Publication, Switch
from switches.tests.e2e.conftest import Desk
from switches.tests.screens import REASON, engaged
from switches.tests.there import acknowledged, checks, says

pytestmark = pytest.mark.e2e
FINANCE = "/switches/segment/finance/"


def version():
    return Publication.objects.get().version


def engage_finance(page):
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()


@pytest.mark.smoke
def test_dialog_follows_the_change_until_everybody_applies_it(desks):
    for name in ("core/a1", "core/a2"):
        says(name, 0, db_now())
    page = desks.of(person("operator")).open("/")

    engage_finance(page)
    panel = page.locator("#effect-dialog")
    expect(panel.get_by_role("status")).to_have_text("Committed. Applied by 0 of 2 instances")
    expect(page.get_by_role("button", name="Done")).to_be_focused()

    says("core/a2", version(), db_now())
    expect(panel.get_by_role("status")).to_have_text("Applied by 1 of 2 instances")
    expect(panel.locator(".stragglers")).to_contain_text("core/a1")
    expect(panel.locator(".stragglers")).not_to_contain_text("core/a2")

    for name in ("core/a1", "core/a2"):
        says(name, version(), db_now())
    acknowledged("core/a2", Switch.objects.get(), 41)
    expect(panel.get_by_role("status")).to_have_text("Applied by all 2 instances")
    expect(panel).to_contain_text("41 ms")
    expect(page.get_by_role("button", name="Done")).to_be_focused()


def test_page_tells_of_a_straggler_that_comes_later(desks):
    kim = engaged("segment:finance")
    says("core/a1", version(), db_now())
    page = desks.of(kim).open(FINANCE)
    panel = page.locator("#effect-page")
    expect(panel.get_by_role("status")).to_have_text("Applied by the 1 instance there is")

    says("core/a2", 0, db_now())

    # Once everybody applies it, the panel looks every five seconds.
    expect(panel.get_by_role("status")).to_have_text("Applied by 1 of 2 instances", timeout=9000)
    expect(panel).to_contain_text("Traffic may still flow through 1 instance")


def test_panel_appears_on_a_page_that_was_open_before_the_first_engage(desks):
    kim = person("operator", "kim")
    page = desks.of(kim).open(FINANCE)
    expect(page.locator("#effect-page")).to_have_count(0)

    engaged("segment:finance", by=kim)
    expect(page.locator("#effect-page")).to_contain_text("Its effect is not known")
    says("core/a1", version(), db_now())

    expect(page.locator("#effect-page")).to_contain_text("Applied by the 1 instance there is")


def test_who_is_hit_stands_before_the_button_as_the_key_is_typed(desks):
    checks("core/a1", "segment:finance", "feature:beta", at=db_now(), per_second=10)
    engaged("feature:beta", reason="Ledger drifts since 01:00, INC-1")
    page = desks.of(person("operator")).open("/")

    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).press_sequentially("finance")
    hit = page.get_by_role("group", name="Who is hit")
    expect(hit).to_contain_text("1 instance of 1 service checked segment:finance")
    expect(hit).to_contain_text("Ledger drifts since 01:00, INC-1")
    expect(page.get_by_label("Key", exact=True)).to_be_focused()

    page.get_by_label("Key", exact=True).fill("nobody")
    expect(hit).to_contain_text("Nobody was seen checking segment:nobody")
    expect(hit).not_to_contain_text("INC-1")


def test_panel_that_gets_no_answer_says_so(desks):
    says("core/a1", 0, db_now())
    desk = desks.of(person("operator"))
    page = desk.open("/")
    engage_finance(page)
    panel = page.locator("#effect-dialog")
    expect(panel).to_contain_text("As of")

    desk.context.set_offline(True)
    expect(panel).to_contain_text("Not current since")
    expect(panel).to_have_class(re.compile("is-stale"))
    desk.context.set_offline(False)
    expect(panel).to_contain_text("As of")

    # What the browser itself says about being offline is no complaint about us.
    desk.complaints = [text for text in desk.complaints if "ERR_INTERNET" not in text]
    desk.complaints = [text for text in desk.complaints if "htmx:" not in text]


@pytest.mark.smoke
@pytest.mark.timeout(200)
def test_poll_that_says_what_it_applies_is_seen_on_the_screen(chromium, tmp_path):
    with running(tmp_path / "var") as installation:
        token = installation.token("switches:read")
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        desk = Desk(context, installation.url)
        with installation.client(token) as service:
            page = desk.open("/")
            page.get_by_label("User name").fill("admin")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("heading", name="Nothing is engaged").wait_for()
            me = {"Switchgear-Instance": "core/a1"}
            before = service.get("/api/v1/snapshot", headers=me)
            assert before.status_code == 200, before.text

            engage_finance(page)
            panel = page.locator("#effect-dialog")
            expect(panel).to_contain_text("Applied by 0 of 1 instance")
            service.get("/api/v1/snapshot", headers=me).raise_for_status()  # Served, not applied.
            page.wait_for_timeout(1500)
            expect(panel).to_contain_text("Applied by 0 of 1 instance")

            applied = service.get("/api/v1/snapshot", headers=me).headers["ETag"].strip('"')
            service.get("/api/v1/snapshot", headers={**me, "Switchgear-Applied": applied})
            expect(panel).to_contain_text("Applied by the 1 instance there is")
            expect(panel).to_contain_text("99 % within")
        context.close()
        assert desk.complaints == []
