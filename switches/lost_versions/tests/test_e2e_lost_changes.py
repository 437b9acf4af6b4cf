"""The page of lost changes in a browser."""

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.tests.e2e import axe
from switches.lost_versions.reconciliation import reconcile_lost_versions
from switches.lost_versions.tests.test_reconciliation import engage, entry, lose

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True), axe.needs_axe]


def test_a_person_keeps_selected_switches_engaged(desks):
    engage("segment:finance")
    lose(entry(), entry("feature:search"))
    reconcile_lost_versions(db_now())
    page = desks.open_desk(person("operator")).open("/attention/")

    page.get_by_role("link", name="Open lost changes").click()
    expect(page.get_by_role("heading", name="3 changes were lost")).to_be_visible()
    faults: axe.Faults = {}
    axe.judge(page, faults)
    assert axe.format_faults(faults) == ""
    # The release was lost: what the person has to choose is not chosen for them.
    expect(page.get_by_role("checkbox", name="segment:finance")).not_to_be_checked()
    page.get_by_role("button", name="Keep the selected switches engaged").click()

    expect(page.get_by_text("2 switches stay engaged.")).to_be_visible()
    expect(page.get_by_role("heading", name="1 change was lost")).to_be_visible()
