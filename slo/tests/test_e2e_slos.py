"""A browser creates an objective, sees it burn, acknowledges it, and tries other rules."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from slo.evaluation import tick
from slo.models import Alert, Slo
from slo.objectives import services

from . import factories
from .month_of_events import Incident, month

pytestmark = pytest.mark.e2e
WHY = "Planned move of the database, CHG-2201"
HOLD = {"on": "page", "do": "hold_ramps"}


def burns(days=3):
    """Return an SLO that has burned for twenty minutes, evaluated just now."""
    now = db_now()
    slo = factories.slo(actions=[HOLD])
    month(slo, now, [Incident(20, 21, 0.2), Incident(2000, 30, 0.3)], days=days)
    tick.evaluate_due_minutes(now)
    return slo


@pytest.mark.smoke
def test_objective_is_made_burns_and_somebody_knows(desks):
    page = desks.open_desk(person("admin")).open("/slos/new/")
    page.get_by_label("Name").fill("core-availability")
    page.get_by_label("Service").fill("core")
    page.get_by_label("Target").fill("99.95")
    expect(page.locator("#preview")).to_contain_text("21 min 36 s")
    page.get_by_role("button", name="Workbook, scaled to the period").click()
    expect(page.get_by_label("Rule 4: Limit (×)")).to_have_value("1")
    page.get_by_role("button", name="Remove rule 4").click()
    expect(page.get_by_label("Rule 4: Limit (×)")).to_have_count(0)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="core-availability")).to_be_visible()
    assert len(services.find_slo("core-availability").rules) == 3

    now = db_now()
    month(Slo.objects.get(), now, [Incident(20, 21, 0.2)], days=2)
    tick.evaluate_due_minutes(now)
    page = desks.open_desk(person("operator")).open("/alerts/")
    page.locator("details.alert-group > summary").first.click()
    row = page.locator("li.alert-row", has_text="1 h and 5 min").first
    row.get_by_role("link", name="Acknowledge").click()
    dialog = page.locator("#dialog")
    dialog.get_by_label("Comment (optional)").fill("Rolling back core 2.14")
    dialog.get_by_role("button", name="Acknowledge").click()

    expect(row).to_contain_text("Acknowledged")
    expect(row).to_contain_text("Rolling back core 2.14")
    row.get_by_role("link", name="core-availability").click()
    expect(page.locator("#live")).to_contain_text("Event counts")
    expect(page.locator(".timeline")).to_contain_text("Rolling back core 2.14")


def test_rules_are_tried_before_they_are_saved(desks):
    burns()
    page = desks.open_desk(person("admin")).open("/slos/core-availability/edit/")
    page.get_by_label("Rule 1: Limit (×)").fill("900")

    page.get_by_role("button", name="Backtest").click()

    dialog = page.locator("#dialog")
    expect(dialog.locator(".backtest__item").first).to_contain_text("Pages 0")
    expect(dialog.locator(".backtest__item").first).to_contain_text("current rules: 2")
    dialog.get_by_role("button", name="a day").click()
    expect(dialog.locator(".backtest__item").first).to_contain_text("current rules: 1")
    dialog.get_by_role("button", name="Back to the form").click()
    expect(page.get_by_label("Rule 1: Limit (×)")).to_have_value("900")
    assert services.find_slo("core-availability").rules[0]["burn_rate"] == 14


def test_span_is_left_out_and_the_budget_is_shown_before(desks):
    burns()
    page = desks.open_desk(person("operator")).open("/slos/core-availability/")
    page.locator("#do-exclude").click()
    dialog = page.locator("#dialog")
    since = db_now() - timedelta(minutes=2005)
    dialog.get_by_label("From").fill(f"{since:%Y-%m-%dT%H:%M}")
    dialog.get_by_label("To", exact=True).fill(f"{since + timedelta(minutes=45):%Y-%m-%dT%H:%M}")
    dialog.get_by_label("To", exact=True).blur()
    expect(dialog.locator(".exclusion-preview")).to_contain_text("With the exclusion")

    dialog.get_by_label("Reason").fill(WHY)
    dialog.get_by_role("button", name="Exclude time range").click()

    expect(page.locator(".toasts")).to_contain_text("Exclusion added")
    expect(page.locator("#below")).to_contain_text(WHY)


def test_postmortem_is_copied_as_markdown(desks):
    burns()
    one = Alert.objects.filter(label="page").first()
    desk = desks.open_desk(person("operator"), permissions=["clipboard-read", "clipboard-write"])
    page = desk.open(f"/alerts/{one.pk}/postmortem/")

    page.get_by_role("button", name="Copy").click()

    expect(page.locator(".toasts")).to_contain_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").startswith("# Postmortem")


@pytest.mark.parametrize(
    "path",
    [
        "alerts/", "alerts/1/", "alerts/1/acknowledge/", "alerts/1/postmortem/", "slos/new/",
        "slos/core-availability/edit/", "slos/core-availability/exclusions/new/",
        "slos/core-availability/backtest/", "slos/core-availability/remove/",
    ],
)  # fmt: skip
def test_phone_page_never_scrolls_sideways(desks, path):
    burns(days=1)
    path = path.replace("/1/", f"/{Alert.objects.order_by('pk')[0].pk}/")
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

    page = desks.open_desk(person("admin"), **phone).open(f"/{path}")

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
