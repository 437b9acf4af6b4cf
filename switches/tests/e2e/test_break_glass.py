"""A refusal by a safety rule in a real browser, overridden by break-glass."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.rules.tests.factories import WHY, create_rule
from switches.tests.browsers import REASON, engaged
from switches.tests.e2e.tap_guard import await_taps

pytestmark = pytest.mark.e2e
RULE = "결제 경로 하나는 열어 둔다"


def test_refusal_leads_to_the_glass_with_the_keyboard_alone(desks):
    create_rule("exclusive", "segment:*", name=RULE)
    engaged("segment:first")
    page = desks.open_desk(person("operator", "lee")).open("/")
    keys = page.keyboard
    page.wait_for_load_state()

    keys.press("e")
    expect(page.get_by_label("Key", exact=True)).to_be_focused()
    keys.type("second")
    keys.press("Tab")
    keys.type(REASON)
    expect(page.locator("#plan")).to_contain_text("Release segment:first first")
    page.get_by_role("button", name="Engage segment:second").press("Enter")
    expect(page.locator("#refused")).to_contain_text(RULE)
    assert not Episode.objects.filter(switch_id="segment:second").exists()

    await_taps(page)
    page.locator("#glass > summary").press("Enter")
    reason = page.get_by_label("Why the rule must be overridden")
    reason.press_sequentially("urgent")
    await_taps(page)
    page.get_by_role("button", name="Break glass and engage").press("Enter")
    expect(page.locator("#glass")).to_contain_text("too short")
    reason.fill(WHY)
    await_taps(page)
    page.get_by_role("button", name="Break glass and engage").press("Enter")

    expect(page.locator("#dialog")).to_contain_text("Break-glass:")
    expect(page.locator("#dialog")).to_contain_text(RULE)
    episode = Episode.objects.get(switch_id="segment:second")
    assert (episode.broke_glass["rule"], episode.reason) == (RULE, REASON)
    await_taps(page)
    page.get_by_role("button", name="Done").press("Enter")
    expect(page.locator("#alarm")).to_contain_text("Break-glass used")
    expect(page.locator("#alarm")).to_contain_text("1 review to sign")


def test_without_a_script_the_glass_breaks_too(desks):
    create_rule("exclusive", "segment:*", name=RULE)
    engaged("segment:first")
    page = desks.open_desk(person("operator", "lee"), java_script_enabled=False).open(
        "/switches/engage/?scope=segment&key=second"
    )
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:second").click()
    page.locator("#glass > summary").click()
    page.get_by_label("Why the rule must be overridden").fill(WHY)
    page.get_by_role("button", name="Break glass and engage").click()

    expect(page).to_have_url(re.compile("/switches/segment/second/$"))
    expect(page.locator("main")).to_contain_text("Engaged against the rule")


def test_admin_words_a_rule_looks_what_it_would_do_and_asks(desks):
    engaged("segment:first")
    engaged("segment:second")
    page = desks.open_desk(person("admin", "ada")).open("/rules/")
    page.get_by_role("link", name="Propose a rule").click()
    page.get_by_label("Name").fill(RULE)
    page.get_by_text("One at a time").click()
    page.get_by_role("textbox", name="Switches", exact=True).fill("segment:*")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#dialog")).to_contain_text("2 are engaged, 1 more than allowed")
    page.get_by_label("Reason", exact=True).fill("both were off on 14 Nov, INC-4411")
    page.get_by_role("button", name="Request approval").click()
    expect(page.locator("#toasts")).to_contain_text("Approval requested")
    page.reload()
    expect(page.locator("main")).to_contain_text("1 change waits for approval")
