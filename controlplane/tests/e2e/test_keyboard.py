"""Each flow by keyboard alone: reached by Tab, visible focus, and focus restored afterwards."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from breakers.dead_letters.models import Departure
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.tests.heaps import heap
from breakers.models import Override
from breakers.services import overrides
from breakers.tests.house import dependency, reports
from controlplane.accounts.models.tokens import Token
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.tests.e2e.keys import Keys
from slo.models import Exclusion
from slo.tests import factories as making
from switches import services
from switches.models import Episode, Switch, WeeklyReport
from switches.report import services as weekly
from switches.report import weeks
from switches.report.compose import get_zone
from switches.tests.browsers import REASON, SAFE_NOW, engaged
from switches.tests.ramps import gated_plan, run_workers, start_ramp

pytestmark = pytest.mark.e2e
FINANCE = "/switches/segment/finance/"


@pytest.fixture
def keys(desks):
    """Open windows for keyboard tests, and at the end assert that each focus was visible."""
    opened = []

    def open_keys(user, path):
        desk = desks.open_desk(user)
        hands = Keys(desk.page)
        opened.append(hands)
        hands.open(f"{desk.url}{path}")
        return hands

    yield open_keys
    for hands in opened:
        hands.assert_all_was_seen()


def button(page, name):
    return page.get_by_role("button", name=re.compile(name))


def test_switch_is_extended_and_released(keys):
    kim = engaged()
    hands = keys(kim, FINANCE)
    page = hands.page
    extend = page.get_by_role("link", name="Extend", exact=True)

    hands.press(extend)
    dialog = page.locator("#dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(extend).to_be_focused()

    hands.press(extend)
    hands.write(dialog.get_by_label("Reason", exact=True), "Vendor fix slips to Monday, INC-4411")
    hands.press(button(dialog, "Extend segment:finance"))
    expect(dialog).to_be_hidden()

    hands.press(page.get_by_role("link", name="Release", exact=True))
    hands.write(dialog.get_by_label("Why it is safe now"), SAFE_NOW)
    hands.press(button(dialog, "Start ramp"))
    expect(page.locator(".ramp")).to_contain_text("5 %")
    assert Switch.objects.get(pk="segment:finance").state == "ramping"


def test_ramp_is_approved_and_aborted(keys):
    kim = engaged("feature:other")
    ramp = start_ramp(plan=gated_plan({"type": "manual"}), by=kim)
    run_workers(90)
    hands = keys(person("approver", "lee"), f"/ramps/{ramp.pk}/")
    page = hands.page

    hands.press(page.get_by_role("link", name="Advance now"))
    dialog = page.locator("#dialog")
    hands.write(dialog.get_by_label("Reason", exact=True), SAFE_NOW)
    hands.press(button(dialog, "Release now|Advance to"))
    expect(dialog).to_be_hidden()

    hands.press(page.get_by_role("button", name=re.compile("Abort")).first)
    expect(page.locator(".ramp")).to_contain_text("on the console.")
    assert Episode.objects.get(switch_id="segment:finance").allow_percent == 0


def test_breaker_is_forced(keys):
    one = dependency("core->oracle", db_now(), criticality="high")
    reports(one, db_now(), "open", instance="a1", failure_rate=0.63)
    hands = keys(person("operator"), "/breakers/")
    page = hands.page

    hands.press(page.locator("#main tbody").get_by_role("link", name=re.compile("^Force")))
    dialog = page.locator("#dialog")
    hands.to(dialog.locator("[name=mode]").first)
    ready = page.locator("html:not([data-taps-ignored])")
    expect(ready).to_have_count(1)  # The tap guard also ignores arrow keys on radio buttons.
    page.keyboard.press("ArrowDown")
    hands.write(dialog.get_by_label("Reason", exact=True), REASON)
    hands.press(button(dialog, "Force core → oracle closed"))
    expect(button(dialog, "Done")).to_be_visible()
    expect(ready).to_have_count(1)
    hands.press(button(dialog, "Done"))

    expect(dialog).to_be_hidden()
    assert Override.objects.get().reason == REASON


def test_override_is_removed(keys):
    one = dependency("core->oracle", db_now(), criticality="high")
    reports(one, db_now(), "open", instance="a1", failure_rate=0.63)
    kim = person("operator", "kim")
    asked = {"mode": "forced_closed", "reason": REASON, "expires_in": "1h"}
    overrides.set_override(
        caller="core", callee="oracle", **asked, actor=kim.as_actor(), now=db_now()
    )
    hands = keys(kim, "/breakers/core/oracle/")
    page = hands.page

    hands.press(page.get_by_role("link", name="Remove the override"))
    dialog = page.locator("#dialog")
    hands.write(dialog.get_by_label("Reason (optional)"), "5xx are gone since 03:40")
    hands.press(button(dialog, "Remove the override"))

    expect(dialog).to_be_hidden()
    expect(page.get_by_role("link", name="Remove the override")).to_have_count(0)
    ended = Override.objects.get()
    assert ended.ended_at
    assert ended.ended_by.endswith("kim")


def test_token_is_made_kept_and_revoked(keys):
    hands = keys(person("admin", "root"), "/tokens/")
    page = hands.page

    hands.press(page.get_by_role("link", name="Create a token"))
    dialog = page.locator("#dialog")
    hands.write(dialog.get_by_label("Name"), "billing")
    hands.press(dialog.get_by_label("switches:read"), "Space")
    hands.press(button(dialog, "Create token"))
    expect(dialog.locator("#token-text")).to_be_visible()
    hands.to(button(dialog, "Copy token"))
    hands.press(dialog.get_by_role("link", name="I've saved it"))
    expect(dialog).to_be_hidden()
    assert Token.objects.get().scopes == ["switches:read"]

    hands.press(page.get_by_role("link", name="Revoke billing"))
    hands.write(dialog.get_by_label("Reason", exact=True), "Replaced by another one")
    hands.press(button(dialog, "Revoke token"))
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("heading", name="No tokens")).to_be_visible()
    assert Token.objects.get().revoked_at


def test_letter_is_retried(keys, settings):
    with heap(settings) as letters:
        entry = letters.add()
        stream = letters.stream()
        indexer.catch_up(stream, db_now())
        path = f"/dead-letters/default/-/letter/{entry}/{stream.name}/"
        hands = keys(person("operator"), path)
        page = hands.page

        hands.press(page.locator("#do-retry"))
        dialog = page.locator("#dialog")
        hands.write(dialog.get_by_label("Reason", exact=True), "oracle is back since 03:10")
        hands.press(button(dialog, "Retry"))

        expect(page.get_by_text("It has not failed again so far.")).to_be_visible()
        assert Departure.objects.get().action == "retry"


def test_span_is_excluded(keys):
    making.slo()
    hands = keys(person("operator"), "/slos/core-availability/")
    page = hands.page

    hands.press(page.get_by_role("link", name=re.compile("Exclude")).first)
    dialog = page.locator("#dialog")
    yesterday = db_now() - timedelta(days=1)
    for label, hour in (("From", "01"), ("To", "02")):
        hands.to(dialog.get_by_label(label, exact=True))
        page.keyboard.type(f"{yesterday:%m%d%Y}")
        page.keyboard.press("ArrowRight")  # A year may have six digits.
        page.keyboard.type(f"{hour}00AM")
    hands.write(dialog.get_by_label("Reason", exact=True), "Planned move, CHG-2201")
    hands.press(button(dialog, "Exclude time range"))

    expect(dialog).to_be_hidden()
    assert Exclusion.objects.get().reason == "Planned move, CHG-2201"


def test_request_is_approved_by_the_second_person(keys):
    kim = engaged("global:all")
    services.release(
        scope="global", key="all", justification=SAFE_NOW, actor=kim.as_actor(), now=db_now()
    )
    hands = keys(person("approver", "lee"), "/approvals/")

    hands.press(button(hands.page, "^Approve").first)

    expect(hands.page.get_by_text(re.compile("approved")).first).to_be_visible()
    assert Approval.objects.get().state == "approved"


def test_report_is_signed(keys):
    engaged()
    now = db_now()
    week = weeks.week_of(now, get_zone()).later(-1)
    lee = person("approver", "lee")
    weekly.generate_report(week=week, actor=lee.as_actor(), now=now)
    hands = keys(lee, f"/reports/weekly/{week}/")

    hands.press(button(hands.page, "Sign").first)

    expect(hands.page.get_by_text(re.compile("Signed off")).first).to_be_visible()
    assert WeeklyReport.objects.get().signed_at


@pytest.mark.parametrize("path", ["/", "/audit/", "/targets/", "/breakers/map/", "/slos/"])
def test_focus_goes_round_each_page_and_is_seen_at_every_stop(rounds, night, path):
    desk = rounds.open_desk(night)
    hands = Keys(desk.page)
    page = hands.open(f"{desk.url}{path}")

    stops = []
    for _ in range(250):
        page.keyboard.press("Tab")
        here = page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)")
        if stops and here in (stops[0], 0, 3):
            break
        hands._look()
        stops.append(here)

    assert len(stops) > 20
    assert len(set(stops)) == len(stops), "the focus is trapped"
    hands.assert_all_was_seen()
