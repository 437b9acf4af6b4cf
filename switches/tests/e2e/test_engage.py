"""Engage, undo and release in a real browser."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from switches.models import Episode
from switches.tests.browsers import REASON, engaged, overdue
from switches.tests.e2e.tap_guard import await_taps
from switches.tests.instances import report_checks

pytestmark = pytest.mark.e2e
PASSWORD = "correct-horse-9"


@pytest.mark.smoke
def test_operator_signs_in_and_engages_with_the_keyboard_alone(desks):
    User.objects.create_user("kim", PASSWORD, role="operator")
    page = desks.open_desk(None).open("/")
    keys = page.keyboard

    keys.type("kim")
    keys.press("Tab")
    keys.type(PASSWORD)
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Nothing is engaged")).to_be_visible()
    page.wait_for_load_state()  # The heading is there before the scripts that listen for keys.

    keys.press("e")
    expect(page.get_by_label("Key", exact=True)).to_be_focused()
    keys.type("finance")
    keys.press("Tab")
    expect(page.get_by_label("Reason", exact=True)).to_be_focused()
    keys.type(REASON)
    expect(page.get_by_text("Every service will be told to stop segment:finance")).to_be_visible()
    keys.press("Tab")
    keys.press("ArrowRight")
    expect(page.get_by_label("1 week")).to_be_checked()
    for _ in range(3):  # past the policy and Cancel
        keys.press("Tab")
    expect(page.get_by_role("button", name="Engage segment:finance")).to_be_focused()
    keys.press("Enter")

    expect(page.get_by_role("button", name="Done")).to_be_focused()
    await_taps(page)
    keys.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("link", name="Engage a switch")).to_be_focused()
    expect(page.get_by_role("heading", name="1 engaged")).to_be_visible()
    expect(page.locator("tr[data-switch='segment:finance']")).to_contain_text(REASON)
    episode = Episode.objects.get()
    assert episode.expires_at - episode.engaged_at == timedelta(days=7)


@pytest.mark.smoke
def test_every_step_works_without_a_script(desks):
    page = desks.open_desk(person("operator"), java_script_enabled=False).open("/")

    page.get_by_role("link", name="Engage a switch").click()
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill("stop")
    page.get_by_role("button", name="Engage").click()
    expect(page.get_by_text("The reason is too short")).to_be_visible()
    expect(page.get_by_label("Key", exact=True)).to_have_value("finance")

    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage").click()
    expect(page.get_by_text(REASON).first).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone: segment:finance")).to_be_visible()

    page.get_by_role("link", name="Engage segment:finance").click()
    page.get_by_label("Reason", exact=True).fill(REASON)
    page.get_by_role("button", name="Engage segment:finance").click()
    page.get_by_role("link", name="Extend").click()
    page.get_by_text("1 week").click()
    page.get_by_label("Reason", exact=True).fill("Vendor fix slips to Monday, INC-4411")
    page.get_by_role("button", name="Extend segment:finance").click()
    expect(page.get_by_text("stays engaged until")).to_be_visible()

    page.get_by_role("link", name="Release", exact=True).click()
    page.get_by_label("Why it is safe now").fill("Vendor confirms recovery")
    page.get_by_role("button", name="Start ramp of segment:finance").click()
    expect(page.locator(".ramp__figure")).to_have_text("5 %")


def test_wrong_field_keeps_what_was_typed_and_takes_the_focus(desks):
    page = desks.open_desk(person("operator")).open("/")

    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill("please stop it")
    page.get_by_text("1 week").click()
    page.get_by_role("button", name="Engage segment:finance").click()

    expect(page.locator("#reason-says")).to_contain_text("too vague")
    expect(page.get_by_label("Reason", exact=True)).to_be_focused()
    expect(page.get_by_label("Reason", exact=True)).to_have_value("please stop it")
    expect(page.get_by_label("Key", exact=True)).to_have_value("finance")
    expect(page.get_by_label("1 week")).to_be_checked()


def test_counter_counts_columns_as_the_rule_does(desks):
    page = desks.open_desk(person("operator")).open("/switches/engage/")
    meter = page.locator("[data-columns]")

    page.get_by_label("Reason", exact=True).fill("결제 이중")
    expect(meter).to_have_text("At least 10 characters")
    page.get_by_label("Reason", exact=True).fill("결제 이중 청구")
    expect(meter).to_have_text("8/2000")


def test_policy_follows_the_scope_until_it_is_chosen(desks):
    page = desks.open_desk(person("operator")).open("/switches/engage/")

    page.get_by_label("Scope", exact=True).select_option("feature")
    expect(page.get_by_role("radio", name="Ramp")).to_be_checked()
    page.get_by_role("radio", name="Release").check(force=True)
    page.get_by_label("Scope", exact=True).select_option("segment")
    expect(page.get_by_role("radio", name="Release")).to_be_checked()


def test_global_takes_the_typed_word_and_then_stands_above_every_page(desks):
    desk = desks.open_desk(person("operator"))
    page = desk.open("/")
    elsewhere = desk.new_page()
    elsewhere.goto(f"{desk.url}/audit/")

    page.keyboard.press("e")
    page.get_by_label("Scope", exact=True).select_option("global")
    expect(page.get_by_label("Key", exact=True)).to_be_hidden()
    expect(page.get_by_role("radio", name="Release")).to_be_hidden()
    page.get_by_label("Reason", exact=True).fill("Credential leak in the agent runner, SEC-112")
    page.get_by_role("button", name="Engage global:all").click()
    expect(page.get_by_text("to stop everything")).to_be_visible()
    assert not Episode.objects.exists()

    page.get_by_label(re.compile("to confirm")).fill("global")
    page.get_by_role("button", name="Engage global:all").click()
    page.get_by_role("button", name="Done").click()

    expect(page.get_by_text("Global stop engaged")).to_be_visible()
    elsewhere.bring_to_front()
    elsewhere.get_by_role("link", name="Approvals").click()
    expect(elsewhere.get_by_text("Global stop engaged")).to_be_visible()
    expect(elsewhere.locator("#alarm")).to_contain_text("SEC-112")


def test_undo_from_the_row_takes_it_back(desks):
    kim = engaged("segment:finance")
    page = desks.open_desk(kim).open("/")

    page.get_by_role("button", name="Undo").click()

    expect(page.locator("#toasts")).to_contain_text("Undone: segment:finance is released")
    expect(page.locator("tr[data-switch='segment:finance']")).to_contain_text("Released")
    assert Episode.objects.get().ended_how == "undone"


def test_undo_leaves_when_its_time_is_up(desks):
    kim = engaged("segment:finance", now=db_now() - timedelta(seconds=26))
    page = desks.open_desk(kim).open("/")

    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_hidden(timeout=6000)


def test_countdown_ticks_and_runs_over_by_the_servers_clock(desks):
    engaged("segment:finance", expires_in="3s", on_expiry="hold")
    desk = desks.open_desk(person("viewer"))
    # This person's own clock is two hours off.
    desk.context.add_init_script("const real = Date.now; Date.now = () => real() + 7200000;")
    page = desk.open("/")
    countdown = page.locator("[data-switch='segment:finance'] [role='timer']")

    expect(countdown).to_have_text(re.compile(r"0:0[123]"))
    expect(countdown).to_have_text(re.compile(r"0:0\d over"), timeout=6000)


def test_release_and_extend_from_the_board_stay_on_the_board(desks):
    engaged("segment:finance")
    page = desks.open_desk(person("operator")).open("/")

    page.get_by_role("link", name="Extend segment:finance").click()
    page.get_by_text("1 week").click()
    page.get_by_label("Reason", exact=True).fill("Vendor fix slips to Monday, INC-4411")
    page.get_by_role("button", name="Extend segment:finance").click()
    expect(page.locator("#toasts")).to_contain_text("stays engaged until")
    expect(page.locator("[role='timer']")).to_have_text(re.compile("7 d 23 h|8 d 0 h"))
    expect(page.get_by_role("link", name="Extend segment:finance")).to_be_focused()

    page.get_by_role("link", name="Release segment:finance").click()
    page.get_by_label("Why it is safe now").fill("Vendor confirms recovery")
    page.get_by_role("button", name="Start ramp of segment:finance").click()
    expect(page.get_by_role("heading", name="1 ramping")).to_be_visible()


def test_second_operator_is_told_who_was_first(desks):
    page = desks.open_desk(person("operator")).open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("finance")
    page.get_by_label("Reason", exact=True).fill(REASON)

    engaged("segment:finance", reason="Ledger drifts since 01:00, INC-1")
    page.get_by_role("button", name="Engage segment:finance").click()

    alert = page.get_by_role("alert").filter(has_text="already engaged")
    expect(alert).to_contain_text("Ledger drifts since 01:00, INC-1")
    expect(alert).to_contain_text("user:kim engaged it at")
    expect(page.get_by_label("Reason", exact=True)).to_have_value(REASON)


def test_overdue_is_acknowledged_from_its_page(desks):
    overdue("segment:late")
    page = desks.open_desk(person("operator")).open("/switches/segment/late/")

    page.get_by_role("link", name="Acknowledge").click()
    page.get_by_role("button", name="Acknowledge").click()

    expect(page.locator("#toasts")).to_contain_text("Escalation is paused for 24 hours")
    expect(page.get_by_role("region", name="Now")).to_contain_text("a-operator")


def test_key_of_another_scope_is_put_right_with_one_press(desks):
    report_checks("core/a1", "feature:nl2sql", at=db_now(), per_second=27)
    page = desks.open_desk(person("operator")).open("/")
    page.keyboard.press("e")
    page.get_by_label("Key", exact=True).fill("nl2sql")
    page.get_by_label("Reason", exact=True).fill(REASON)

    page.get_by_role("link", name="Choose feature:nl2sql instead").click()

    expect(page.get_by_text("Every service will be told to stop feature:nl2sql")).to_be_visible()
    expect(page.get_by_label("Reason", exact=True)).to_have_value(REASON)
    expect(page.get_by_role("radio", name="Ramp")).to_be_checked()
    page.get_by_role("button", name="Engage feature:nl2sql").click()
    expect(page.get_by_role("button", name="Done")).to_be_visible()
    expect(page.get_by_role("dialog")).not_to_contain_text("No checks")


def test_whole_id_in_the_key_is_split_and_a_complaint_leaves_with_what_it_was_about(desks):
    page = desks.open_desk(person("operator")).open("/")
    page.keyboard.press("e")
    key = page.get_by_label("Key", exact=True)
    page.get_by_label("Reason", exact=True).fill(REASON)
    key.fill("team:nl2sql")
    page.get_by_role("button", name="Engage segment:team:nl2sql").click()
    expect(page.locator("#key-says")).to_contain_text("without the scope")

    key.fill("")
    key.press_sequentially("feature:nl2sql")

    expect(key).to_have_value("nl2sql")
    expect(page.get_by_label("Scope", exact=True)).to_have_value("feature")
    expect(page.locator("#key-says")).to_be_empty()
    expect(page.get_by_role("button", name="Engage feature:nl2sql")).to_be_visible()
    key.fill("global:all")
    expect(page.get_by_label(re.compile("to confirm"))).to_be_focused()
    expect(page.get_by_text("Every service will be told to stop all traffic")).to_be_visible()
