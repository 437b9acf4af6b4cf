"""A browser creates a threshold rule, previews it, saves it, and sees it fire."""

import pytest
from playwright.sync_api import expect

from breakers.tests.house import dependency, minute
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from slo.models import ThresholdRule

pytestmark = pytest.mark.e2e


def test_an_admin_makes_a_rule_in_the_dialog_and_sees_what_it_finds(desks):
    now = db_now()
    minute(dependency("core->oracle", now), now, ago=1, success=960, timeout=40)
    page = desks.open_desk(person("admin")).open("/slos/thresholds/")
    expect(page.locator("#threshold-timeout_rate")).to_contain_text("Firing for 1")

    page.get_by_role("link", name="New rule").click()
    dialog = page.locator("#dialog")
    dialog.get_by_role("link", name="Choose Timeout rate").click()
    dialog.get_by_label("Name").fill("core-timeouts")
    dialog.get_by_label("Limit").fill("3")
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("It would fire now for 1:")
    expect(dialog).to_contain_text("4 % of the calls of core → oracle timed out in 5 min")
    dialog.get_by_role("button", name="Create rule").click()

    row = page.locator("#threshold-core-timeouts")
    expect(row).to_contain_text("Timeout rate above 3 % in 5 min")
    expect(row).to_contain_text("Firing for 1")
    assert ThresholdRule.objects.get(name="core-timeouts").value == 0.03

    row.get_by_role("link", name="Edit").click()
    dialog.get_by_label("Limit").fill("many")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("Must be a number")
    dialog.get_by_label("Limit").fill("4")
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Timeout rate above 4 % in 5 min")
    expect(row).to_contain_text("OK")
