"""Links from *Needs attention* to the pages that settle the items."""

import re

import pytest
from playwright.sync_api import expect

from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.tests.e2e import axe
from slo.models import Alert
from switches import services
from switches.models import Episode, Switch, WeeklyReport
from switches.report import services as reports
from switches.report import weeks
from switches.report.compose import get_zone
from switches.tests.browsers import SAFE_NOW, engaged, overdue

pytestmark = pytest.mark.e2e
PHONE = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}


@pytest.mark.smoke
def test_overdue_switch_is_found_and_extended(desks):
    overdue("segment:late")
    page = desks.open_desk(person("operator")).open("/")

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Needs attention").click()
    page.get_by_role("link", name=re.compile("^segment:late is overdue")).click()
    page.get_by_role("link", name="Extend").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason", exact=True).fill("vendor still answers 5xx, INC-4411")
    dialog.get_by_role("button", name=re.compile("Extend|Keep")).click()

    expect(dialog).to_be_hidden()
    expect(page.get_by_text("1 overdue")).to_have_count(0)
    assert not Episode.objects.get().overdue


def test_second_person_finds_the_request_and_approves_it(desks):
    kim = engaged("global:all")
    services.release(
        scope="global", key="all", justification=SAFE_NOW, actor=kim.as_actor(), now=db_now()
    )
    page = desks.open_desk(person("approver", "lee")).open("/attention/")

    page.get_by_role("link", name=re.compile("^Approve or deny…: .*Release global:all")).click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()

    expect(page.get_by_text(re.compile("approved")).first).to_be_visible()
    expect(page.get_by_text("Approval needed")).to_have_count(0)
    assert Approval.objects.get().state == "approved"
    assert Switch.objects.get(pk="global:all").state == "ramping"


def test_overdue_switch_is_extended_in_place(desks):
    overdue("segment:late")
    page = desks.open_desk(person("operator"), **PHONE).open("/attention/")

    page.get_by_role("link", name=re.compile("^Extend…: segment:late is overdue")).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason", exact=True).fill("vendor still answers 5xx, INC-4411")
    dialog.get_by_role("button", name=re.compile("Extend|Keep")).click()

    expect(dialog).to_be_hidden()
    expect(page.get_by_text("segment:late is overdue")).to_have_count(0)
    expect(page).to_have_url(re.compile("/attention/$"))
    assert not Episode.objects.get().overdue


def test_group_of_alerts_is_acknowledged_on_a_phone(desks):
    now = db_now()
    alerts = [
        Alert.objects.create(
            kind="burn", rule=f"rule {place}", severity="critical", label="page", service="core",
            subject=f"core-{place}", summary=f"core-{place} burns", opened_at=now, firing_at=now,
        )
        for place in range(3)
    ]  # fmt: skip
    Alert.objects.update(group=alerts[0].pk)
    page = desks.open_desk(person("operator"), **PHONE).open("/alerts/")
    expect(page.get_by_text("3 alerts about core")).to_be_visible()
    button = page.get_by_role("link", name="Acknowledge all 3: 3 alerts about core")
    assert button.bounding_box()["height"] >= 44
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    faults: axe.Faults = {}
    if axe.SOURCE.exists():
        axe.judge(page, faults)
    assert not faults, axe.format_faults(faults)

    page.set_viewport_size(PHONE["viewport"])
    button.tap()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Acknowledge 3 alerts").tap()

    expect(dialog).to_be_hidden()
    expect(page.get_by_text("All are acknowledged.")).to_be_visible()
    assert not Alert.objects.filter(acknowledged_at=None).exists()


@pytest.mark.parametrize("has_script", [True, False])
def test_comment_is_written_on_an_alert(desks, has_script):
    now = db_now()
    alert = Alert.objects.create(
        kind="burn", rule="r", severity="critical", label="page", service="core",
        subject="core-a", summary="core-a burns", opened_at=now, firing_at=now,
    )  # fmt: skip
    desk = desks.open_desk(person("operator"), java_script_enabled=has_script)
    page = desk.open(f"/alerts/{alert.pk}/")

    page.get_by_role("link", name="Comment…").click()
    page.get_by_label("Comment", exact=True).fill("벤더에 전화함, INC-4412")
    page.get_by_role("button", name="Add comment").click()

    timeline = page.get_by_role("region", name="Timeline")
    expect(timeline.get_by_text("벤더에 전화함, INC-4412")).to_be_visible()
    expect(page).to_have_url(re.compile(f"/alerts/{alert.pk}/$"))


def test_report_is_read_and_signed_without_a_script(desks):
    engaged("segment:finance")
    now = db_now()
    week = weeks.week_of(now, get_zone()).later(-1)
    lee = person("approver", "lee")
    reports.generate_report(week=week, actor=lee.as_actor(), now=now)
    page = desks.open_desk(lee, java_script_enabled=False).open("/reports/weekly/")

    page.get_by_role("link", name=re.compile(f"Week {week.number}|{week}")).first.click()
    page.get_by_label(re.compile("Comment")).fill("looked at each of them")
    page.get_by_role("button", name="Sign off").click()

    expect(page.get_by_text("looked at each of them")).to_be_visible()
    assert WeeklyReport.objects.get().signed_by == "user:lee"
