"""A ramp in a real browser: planned, begun, followed and aborted."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.gates.external import record_verdict
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs.models import Job
from switches.models import Episode, Ramp
from switches.tests.browsers import SAFE_NOW, engaged
from switches.tests.ramps import first_gate_result, gated_plan, run_workers, start_ramp

pytestmark = pytest.mark.e2e
FINANCE = "/switches/segment/finance/"
PAGES = ("/", "/ramps/", "/jobs/", "/ramps/{}/", FINANCE, "/switches/feature/calm/release/")


def widest(page):
    return page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.smoke
def test_ramp_is_planned_watched_and_aborted_by_a_key(desks):
    engaged()
    page = desks.open_desk(person("operator")).open(FINANCE)

    page.get_by_role("link", name="Release", exact=True).click()
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    page.locator("#plan-editor > summary").click()
    page.get_by_label("Step 1: Dwell").fill("61s")
    page.get_by_role("button", name="Remove step 2").click()
    expect(page.get_by_label("Step 3: Dwell")).to_have_count(0)
    expect(page.get_by_label("Step 1: Dwell")).to_have_value("61s")
    page.get_by_role("button", name="Add step").click()
    expect(page.get_by_label("Step 2: Share, %")).to_be_focused()
    page.get_by_role("button", name="Start ramp of segment:finance").click()

    panel = page.locator(".ramp")
    expect(panel.locator(".ramp__figure")).to_have_text("5 %")
    expect(page.locator("#announcer")).to_contain_text("segment:finance is ramping at 5 %")
    expect(page.locator(".toast:visible")).to_have_count(0)
    run_workers(63)
    expect(panel.locator(".ramp__figure")).to_have_text("52 %")
    expect(panel).to_contain_text("step 2 of 3")
    expect(panel.locator(".ramp__step").first).to_contain_text("Passed")

    page.keyboard.press("a")
    expect(page.locator(".switch-head .state")).to_have_text("Engaged")
    expect(page.locator(".toast:visible")).to_have_count(0)
    expect(panel).to_contain_text("on the console.")
    announcer = page.locator("#announcer")
    expect(announcer).to_contain_text("Aborted")
    assert not re.search(r"\s\s|\s;", announcer.text_content())
    assert Episode.objects.get().allow_percent == 0


def test_ramp_page_shows_an_advance_and_an_abort_itself(desks):
    ramp = start_ramp("feature:mail", by=person("approver", "ada"))
    page = desks.open_desk(ramp.requested_by).open(f"/ramps/{ramp.pk}/")
    page.get_by_role("link", name="Advance now").click()
    page.get_by_label("Reason", exact=True).fill("Error rates are normal, skip the wait")
    page.get_by_role("button", name="Advance to 25 %").click()
    expect(page.locator(".ramp__figure")).to_have_text("25 %")
    page.get_by_role("button", name="Abort ramp").click()

    expect(page.locator(".ramp__figure")).to_have_text("0 %")
    expect(page.locator("#announcer")).to_contain_text("Ramp aborted: feature:mail is engaged")
    expect(page.get_by_role("link", name="Release again")).to_be_visible()
    expect(page.locator(".toast:visible")).to_have_count(0)


def test_page_of_a_ramp_that_a_gate_ends_offers_to_release_again(desks):
    ramp = start_ramp(plan=gated_plan({"type": "external", "gate": "smoke"}))
    page = desks.open_desk(ramp.requested_by).open(f"/ramps/{ramp.pk}/")
    expect(page.get_by_role("link", name="Release again")).to_have_count(0)

    actor = system_actor("ci")
    record_verdict(name="smoke", verdict="fail", evidence={}, actor=actor, now=db_now())
    run_workers(2)

    expect(page.locator(".ramp")).to_contain_text("A gate failed: external gate smoke")
    expect(page.get_by_role("link", name="Release again")).to_be_visible()


def test_abort_elsewhere_replaces_the_message_before(desks):
    ramp = start_ramp("feature:mail", by=person("approver", "ada"))
    page = desks.open_desk(ramp.requested_by).open("/")
    for message in ("Step 2 of feature:mail started at 25 %.", "Ramp aborted."):
        detail = f"{{detail: {{message: '{message}', shown: false}}}}"
        page.evaluate(f"document.dispatchEvent(new CustomEvent('switchgear:done', {detail}))")

    expect(page.locator(".toast [data-text]")).to_have_text(["Ramp aborted."])


def test_verdicts_change_under_open_details_and_the_focus(desks):
    kim = engaged("feature:other")
    ramp = start_ramp(plan=gated_plan({"type": "external", "gate": "smoke"}), by=kim)
    first_gate_result(
        ramp, verdict="no_data", evidence={"why": "no observation of smoke has been reported yet"}
    )
    page = desks.open_desk(kim).open(f"/ramps/{ramp.pk}/")
    gate = page.locator(".gate")
    expect(gate).to_contain_text("No data")
    gate.get_by_text("Evidence").click()
    page.get_by_role("link", name="Pause").focus()

    first_gate_result(ramp, verdict="pass", evidence={"passed": 41})

    expect(gate).to_contain_text("Pass")
    expect(gate.locator("pre")).to_contain_text('"passed": 41')
    expect(gate.locator("pre")).to_be_visible()
    expect(page.get_by_role("link", name="Pause")).to_be_focused()


def test_dwell_ticks_down_by_itself(desks):
    ramp = start_ramp()
    page = desks.open_desk(person("viewer")).open(f"/ramps/{ramp.pk}/")
    left = page.locator(".ramp__text [data-rest]")

    first = left.inner_text()
    expect(left).not_to_have_text(first)

    assert re.fullmatch(r"4:5\d", left.inner_text())


def test_key_aborts_nothing_while_one_types_or_where_there_are_two(desks):
    kim = engaged("feature:other")
    start_ramp("segment:a", by=kim)
    page = desks.open_desk(kim).open("/switches/segment/a/")
    page.wait_for_load_state()
    page.keyboard.press("e")  # A dialog with a text to type.
    page.get_by_label("Reason", exact=True).press_sequentially("a a a")
    page.keyboard.press("Escape")
    start_ramp("segment:b", by=kim)
    page.goto(f"{page.url.partition('/switches')[0]}/")
    page.wait_for_load_state()
    page.keyboard.press("a")

    expect(page.locator(".toast")).to_contain_text("This page shows 2 ramps")
    assert Ramp.objects.filter(live=True).count() == 2


def test_tab_that_nobody_looks_at_asks_for_no_verdicts(desks):
    ramp = start_ramp()
    page = desks.open_desk(person("viewer")).open(f"/ramps/{ramp.pk}/")
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, value: true})"
    page.evaluate(hide)
    page.wait_for_timeout(500)  # Requests that were under way when the page was hidden.
    requests_made = []
    page.on("request", lambda request: requests_made.append(request.url))

    page.wait_for_timeout(3000)

    assert not [url for url in requests_made if "/part/" in url]


def test_without_a_script_it_is_released_and_aborted_all_the_same(desks):
    engaged()
    page = desks.open_desk(person("operator"), java_script_enabled=False).open(f"{FINANCE}release/")
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    page.locator("#plan-editor > summary").click()
    page.get_by_role("button", name="Add step").click()
    expect(page.get_by_label("Step 3: Share, %")).to_have_value("62")
    expect(page.get_by_label("Why it is safe now")).to_have_value(SAFE_NOW)
    page.get_by_role("button", name="Start ramp of segment:finance").click()
    assert [step["percent"] for step in Ramp.objects.get().plan] == [5, 25, 62, 100]

    page.get_by_role("button", name="Abort ramp").click()

    expect(page.locator(".toast")).to_contain_text("Ramp aborted: segment:finance is engaged again")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_has_no_sideways_scroll(desks, scheme):
    kim = engaged("feature:calm")
    gates = [{"type": "external", "gate": "x" * 110}, {"type": "slo", "slo": "s" * 190}]
    ramp = start_ramp(plan=gated_plan(*gates), by=kim)
    first_gate_result(ramp, verdict="fail", evidence={"why": "w" * 400, "figure" * 20: "v" * 300})
    Job.objects.update(state="holding", hold_reason="h" * 500)
    desk = desks.open_desk(kim, viewport={"width": 390, "height": 844}, color_scheme=scheme)

    for path in PAGES:
        page = desk.open(path.format(ramp.pk))
        assert widest(page) <= 390, path
    page.locator("#plan-editor > summary").click()
    page.get_by_role("button", name="Add gate").click()
    expect(page.get_by_label("SLO", exact=True)).to_be_focused()
    assert widest(page) <= 390
