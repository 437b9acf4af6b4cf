"""The release dialog: its proposed plan, gates from lists, one button, no accidental release."""

import re

import pytest
from playwright.sync_api import expect

from breakers.tests.registered import dependency
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from slo.tests.factories import slo
from switches.models import Episode, Ramp
from switches.rules.tests.factories import create_rule
from switches.tests.browsers import SAFE_NOW, engaged
from switches.tests.e2e.tap_guard import await_taps
from switches.tests.ramps import start_ramp

pytestmark = pytest.mark.e2e
PAUSES_MS = (120, 250, 450, 700, 1200)
PHONE = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}
SIZES = [(320, 568), (390, 844), (568, 320), (844, 390), (1280, 720)]
SWITCH = "/switches/feature/mail/"
AT_ONCE, GLASS = ".immediate-release > summary", ".break-glass > summary"
STEPS = "A ramp returns traffic in steps"
SHOWN = "#dialog .form-foot .button--big:visible"


def open_dialog(page):
    page.goto(page.url.partition("#")[0])
    page.locator("#do-release").click()
    expect(page.locator("#dialog form[data-release]")).to_be_visible()
    await_taps(page)


def tap_twice(page, x, y, pause_ms):
    page.touchscreen.tap(x, y)
    page.wait_for_timeout(pause_ms)
    page.touchscreen.tap(x, y)


def center(target):
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
def approver():
    engaged("feature:mail")
    return person("approver", "ada")


@pytest.fixture
def gate_targets():
    slo("mail-availability")
    dependency(db_now(), "mail->smtp")


def test_ramp_with_an_slo_and_a_breaker_gate_starts_without_a_typed_name(
    desks, approver, gate_targets
):
    page = desks.open_desk(approver).open(SWITCH)
    open_dialog(page)
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    page.locator("#plan-editor > summary").click()

    page.get_by_label("Kind of the new gate").select_option(label="SLO")
    page.get_by_role("button", name="Add gate").click()
    page.get_by_label("SLO", exact=True).select_option("mail-availability")
    page.get_by_label("Kind of the new gate").select_option(label="Breaker")
    page.get_by_role("button", name="Add gate").click()
    page.get_by_label("Dependency", exact=True).select_option("mail->smtp")
    expect(page.locator("#plan-watched")).to_contain_text("Each step has a gate.")
    page.get_by_role("button", name="Start ramp of feature:mail").click()

    expect(page.locator(".ramp__figure")).to_have_text("5 %")
    gates = [[gate["type"] for gate in step["gates"]] for step in Ramp.objects.get().plan]
    assert gates == [["slo", "breaker"]] * 3


def test_advice_to_add_a_gate_opens_the_plan_by_keyboard(desks, approver, gate_targets):
    page = desks.open_desk(approver).open(SWITCH)
    open_dialog(page)

    page.get_by_role("link", name="add an SLO or breaker gate").press("Enter")

    expect(page.get_by_label("Kind of the new gate")).to_be_focused()


def test_gate_is_chosen_from_a_list_without_javascript(desks, approver, gate_targets):
    desk = desks.open_desk(approver, java_script_enabled=False)
    page = desk.open(f"{SWITCH}release/")
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    page.locator("#plan-editor > summary").click()
    page.get_by_label("Kind of the new gate").select_option(label="SLO")
    page.get_by_role("button", name="Add gate").click()
    page.get_by_label("SLO", exact=True).select_option("mail-availability")
    page.get_by_role("button", name="Start ramp of feature:mail").click()

    expect(page.locator(".toast")).to_contain_text("feature:mail is ramping at 5 %")
    assert Ramp.objects.get().plan[0]["gates"][0]["slo"] == "mail-availability"


def test_ramp_is_not_started_without_a_gate_that_is_being_added(desks, approver, gate_targets):
    page = desks.open_desk(approver).open(SWITCH)
    open_dialog(page)
    page.locator("#plan-editor > summary").click()
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    page.get_by_label("Kind of the new gate").select_option(label="SLO")
    page.evaluate(
        """() => {
            document.querySelector("[value^=add-gate]").click();
            document.querySelector("#start-ramp").click();
        }"""
    )

    expect(page.get_by_label("SLO", exact=True)).to_be_visible()
    assert not Ramp.objects.exists()


def test_second_edit_waits_until_the_first_is_answered(desks, approver, gate_targets):
    page = desks.open_desk(approver).open(f"{SWITCH}release/")
    page.locator("#plan-editor > summary").click()
    sent = []

    def answer_later(route):
        if route.request.method == "POST":
            sent.append(route.request.post_data)
            page.wait_for_timeout(400 * len(sent))
        route.continue_()

    page.route("**/release/", answer_later)
    page.evaluate(
        """() => {
            document.querySelector("[value=remove-step-1]").click();
            document.querySelector("[value^=add-gate]").click();
        }"""
    )
    expect(page.get_by_role("button", name="Add gate")).to_be_disabled()
    expect(page.get_by_label("Step 1: Dwell")).to_be_disabled()
    expect(page.locator(".form-foot .button--big:enabled")).to_have_count(0)
    expect(page.locator(".plan-step")).to_have_count(2)
    page.unroute("**/release/")
    assert len(sent) == 1

    page.get_by_role("button", name="Add gate").click()

    expect(page.locator(".plan-shared .plan-gate")).to_have_count(1)
    expect(page.locator(".plan-step")).to_have_count(2)
    expect(page.locator(".form-foot .button--big:visible")).to_be_enabled()


def test_steps_keep_their_numbers_on_a_phone(desks, approver):
    page = desks.open_desk(approver, **PHONE).open(f"{SWITCH}release/")
    page.locator("#plan-editor > summary").click()

    numbers = page.locator(".plan-step__number:visible")

    expect(numbers).to_have_text(["1", "2", "3"])
    for number, share in zip(numbers.all(), page.get_by_label("Share, %").all(), strict=True):
        of_number, of_share = number.bounding_box(), share.bounding_box()
        assert of_number["x"] + of_number["width"] <= of_share["x"]
        assert 0 < of_number["y"] + of_number["height"] - of_share["y"] < of_share["height"]


def test_gates_are_set_per_step_and_merged_again(desks, approver, gate_targets):
    page = desks.open_desk(approver).open(f"{SWITCH}release/")
    page.locator("#plan-editor > summary").click()
    page.get_by_role("button", name="Add gate").click()
    expect(page.locator(".plan-shared .plan-gate")).to_have_count(1)
    page.get_by_role("button", name="Set gates per step").click()
    expect(page.locator(".plan-step .plan-gate")).to_have_count(3)

    page.get_by_role("button", name="Use the same gates for all steps").click()

    expect(page.locator(".plan-step .plan-gate")).to_have_count(0)
    expect(page.locator(".plan-shared .plan-gate")).to_have_count(1)


def test_dialog_says_how_long_the_default_plan_takes_before_it_is_opened(desks, approver):
    page = desks.open_desk(approver).open(SWITCH)

    open_dialog(page)

    summary = page.locator("#plan-editor > summary")
    expect(summary).to_contain_text("5 %, 25 %, 100 % in 3 steps of 5 min, no gates")
    expect(summary).not_to_contain_text("Same plan")


def test_plan_of_an_aborted_ramp_is_proposed_again_and_stays_editable(
    desks, approver, gate_targets
):
    gate = {"type": "slo", "slo": "mail-availability", "max_burn_rate": 2}
    plan = [
        {"percent": percent, "dwell_seconds": dwell, "gates": [gate]}
        for percent, dwell in ((10, 120), (100, 60))
    ]
    ramp = start_ramp("feature:chat", plan=plan, by=approver)
    engaged("feature:chat", by=approver)
    page = desks.open_desk(approver).open("/switches/feature/chat/")
    open_dialog(page)
    summary = page.locator("#plan-editor > summary")
    same_plan = re.compile(r"Same plan as an earlier ramp \(\d\d:\d\d\)")
    expect(summary).to_contain_text("10 %, 100 % in 2 steps, the last after at least 2 min,")
    expect(summary).to_contain_text(same_plan)

    page.get_by_label("Why it is safe now").fill(SAFE_NOW)
    summary.click()
    expect(page.get_by_label("SLO", exact=True)).to_have_value("mail-availability")
    page.get_by_label("Step 1: Dwell").fill("3m")
    page.get_by_role("button", name="Check plan").click()
    expect(summary).to_contain_text("the last after at least 3 min")
    expect(summary).not_to_contain_text("Same plan")
    page.get_by_role("button", name="Start ramp of feature:chat").click()

    expect(page.locator(".ramp__figure")).to_have_text("10 %")
    again = Ramp.objects.exclude(pk=ramp.pk).get()
    assert again.plan == [{**ramp.plan[0], "dwell_seconds": 180}, ramp.plan[1]]


def test_plan_is_hidden_while_the_release_at_once_is_open(desks, approver):
    page = desks.open_desk(approver).open(SWITCH)
    open_dialog(page)
    of_ramp = [page.locator("#plan-editor"), page.locator("#plan-watched"), page.get_by_text(STEPS)]

    for part in of_ramp:
        expect(part).to_be_visible()
    page.locator(AT_ONCE).click()
    for part in of_ramp:
        expect(part).to_be_hidden()
    page.locator(AT_ONCE).click()

    for part in of_ramp:
        expect(part).to_be_visible()
    expect(page.locator(SHOWN)).to_have_text("Start ramp of feature:mail")


def test_first_line_of_the_note_stays_beside_its_icon(desks, approver):
    page = desks.open_desk(approver).open(SWITCH)
    open_dialog(page)
    note = page.locator("#dialog .note").first

    page.locator(AT_ONCE).click()
    expect(page.locator(SHOWN)).to_have_text("Release feature:mail now")

    first_line = note.locator("p:visible").first
    assert first_line.bounding_box()["y"] <= note.locator("svg").bounding_box()["y"]


def test_plan_is_shown_while_break_glass_releases_in_steps_only(desks, approver):
    create_rule("at_least_one", "feature:mail", "feature:chat")
    page = desks.open_desk(approver).open(SWITCH)
    open_dialog(page)
    plan = page.locator("#plan-editor")
    page.locator(GLASS).click()
    expect(plan).to_be_visible()

    page.get_by_text("All at once", exact=True).click()
    expect(plan).to_be_hidden()
    page.get_by_text("In steps", exact=True).click()

    expect(plan).to_be_visible()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_each_part_has_one_button_at_the_same_place(desks, approver, width, height):
    touch = {"is_mobile": width < 900, "has_touch": width < 900}
    desk = desks.open_desk(approver, viewport={"width": width, "height": height}, **touch)
    page = desk.open(SWITCH)
    open_dialog(page)
    page.wait_for_timeout(300)  # the dialog rises
    expect(page.locator(SHOWN)).to_have_text("Start ramp of feature:mail")
    before = page.locator(SHOWN).bounding_box()

    page.locator("#plan-editor > summary").click()
    page.get_by_role("button", name="Add gate").click()
    expect(page.locator(".plan-shared .plan-gate")).to_have_count(1)
    edited = page.locator(SHOWN).bounding_box()
    page.locator(AT_ONCE).click()
    expect(page.locator(SHOWN)).to_have_text("Release feature:mail now")
    after = page.locator(SHOWN).bounding_box()

    for box in (before, edited, after):
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height
        assert box["x"] + box["width"] <= width
        assert abs(box["y"] + box["height"] - before["y"] - before["height"]) < 1
        assert abs(box["x"] + box["width"] - before["x"] - before["width"]) < 1


@pytest.mark.parametrize(("width", "height"), [(568, 320), (844, 390)])
def test_landscape_phone_keeps_most_of_its_height_for_the_form(desks, approver, width, height):
    size = {"width": width, "height": height}
    page = desks.open_desk(approver, viewport=size, is_mobile=True, has_touch=True).open(SWITCH)
    open_dialog(page)
    reason = page.get_by_label("Why it is safe now")
    reason.scroll_into_view_if_needed()

    foot = page.locator("#dialog .form-foot").bounding_box()

    assert foot["height"] <= height * 0.25
    for target in (reason, page.locator("#plan-editor > summary"), page.locator(AT_ONCE)):
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + min(box["height"], 44) <= foot["y"]


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_double_tap_anywhere_above_the_buttons_never_releases(desks, approver, pause_ms):
    page = desks.open_desk(approver, **PHONE).open(SWITCH)
    open_dialog(page)
    for y in range(20, 700, 68):
        for x in (60, 195, 330):
            if not page.locator("#dialog form[data-release]").is_visible():
                page.goto(page.url)
                open_dialog(page)
            if not page.get_by_label("Why it is safe now").input_value():
                page.get_by_label("Why it is safe now").fill(SAFE_NOW)
            tap_twice(page, x, y, pause_ms)
        page.keyboard.press("Escape")  # an open list of gate kinds; the dialog too
        page.wait_for_timeout(50)
    assert not Ramp.objects.exists()
    assert Episode.objects.get().ended_at is None


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_double_tap_that_opens_the_part_at_once_does_not_release(desks, approver, pause_ms):
    page = desks.open_desk(approver, **PHONE).open(SWITCH)
    open_dialog(page)
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)

    tap_twice(page, *center(page.locator(AT_ONCE)), pause_ms)
    page.wait_for_timeout(500)

    assert Episode.objects.get().ended_at is None


@pytest.mark.parametrize("pause_ms", PAUSES_MS)
def test_double_tap_on_start_ramp_starts_one_ramp_and_releases_nothing(desks, approver, pause_ms):
    page = desks.open_desk(approver, **PHONE).open(SWITCH)
    open_dialog(page)
    page.get_by_label("Why it is safe now").fill(SAFE_NOW)

    tap_twice(page, *center(page.locator(SHOWN)), pause_ms)
    expect(page.locator(".ramp__figure")).to_have_text("5 %")
    page.wait_for_timeout(500)

    assert Ramp.objects.get().live
    assert Episode.objects.get().ended_at is None
