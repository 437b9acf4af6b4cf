"""A browser watches an alert lose its data after its traffic was blocked."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from breakers.tests.registered import dependency
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.tests.e2e import axe
from slo.alerts import notifications
from slo.arithmetic.minutes import last_ended
from slo.models import Alert, SloStatus
from switches.tests.browsers import engaged
from switches.tests.instances import report_checks

from . import factories
from .month_of_events import alert

pytestmark = pytest.mark.e2e
MINUTE = timedelta(minutes=1)
RULE = {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page"}


def set_status(slo, state, rates, since):
    SloStatus.objects.update_or_create(
        slo=slo,
        defaults={
            "minute": last_ended(db_now()),
            "state": state,
            "since": since,
            "rules": [{**RULE, "state": state}],
            "burn_rates": rates,
        },
    )


def test_alert_without_data_says_since_when_and_why(desks):
    now = db_now()
    slo = factories.slo("oracle-answers", service="oracle")
    set_status(slo, "firing", {"1h": 18.2, "5m": 31.0}, now - 60 * MINUTE)
    one = alert(slo, now - 60 * MINUTE, None)
    page = desks.open_desk(person("operator")).open(f"/alerts/{one.pk}/")
    reading = page.locator(".alert-reading")
    expect(reading).to_contain_text("Firing now 18.2× over 1h, 31× over 5m")

    dependency(now, "core->oracle")
    report_checks("core/a1", "feature:nl2sql", at=now, per_second=2)
    engaged("feature:nl2sql", now=now - 57 * MINUTE)
    set_status(slo, "unknown", {"1h": None, "5m": None}, now - 52 * MINUTE)

    expect(reading).to_contain_text("No data since", timeout=15_000)
    expect(reading).not_to_contain_text("Firing now")
    expect(page.locator("#live")).to_contain_text("core checks it and calls oracle")
    page.get_by_role("link", name="feature:nl2sql").first.click()
    expect(page).to_have_url(re.compile("/switches/feature/nl2sql/$"))


def test_status_that_is_no_longer_evaluated_turns_gray(desks):
    now = db_now()
    slo = factories.slo()
    set_status(slo, "firing", {"1h": 18.2, "5m": 31.0}, now - 60 * MINUTE)
    desk = desks.open_desk(person("viewer"))
    page = desk.open("/slos/")
    row = page.locator(f"#slo-{slo.pk}")
    expect(row).to_contain_text("18.2×")

    SloStatus.objects.update(minute=last_ended(now) - 30)

    expect(row).to_contain_text("no update since", timeout=15_000)
    expect(page.locator("#live")).to_contain_text("No SLO has been evaluated since")
    expect(page.locator("#live")).not_to_contain_text("paging now")
    gray, ink = (
        page.locator(place).first.evaluate("one => getComputedStyle(one).color")
        for place in (".slos__rate.dated--stale", ".slos__what a")
    )
    assert gray != ink


@axe.needs_axe
def test_stale_and_missing_figures_are_accessible(desks):
    now = db_now()
    silent, stale = factories.slo("silent"), factories.slo("stale")
    set_status(silent, "unknown", {"1h": None, "5m": None}, now - 52 * MINUTE)
    set_status(stale, "firing", {"1h": 18.2, "5m": 31.0}, now - 60 * MINUTE)
    SloStatus.objects.filter(slo=stale).update(minute=last_ended(now) - 30)
    paths = [f"/alerts/{alert(one, now - 60 * MINUTE, None).pk}/" for one in (silent, stale)]
    desk = desks.open_desk(person("operator"))
    faults: axe.Faults = {}

    for path in (*paths, "/alerts/", "/slos/", "/slos/silent/", "/slos/stale/"):
        axe.judge(desk.open(path), faults)

    assert axe.format_faults(faults) == ""


def test_link_to_a_group_of_alerts_unfolds_it(desks):
    now = db_now()
    alerts = [alert(factories.slo(name), now - 9 * MINUTE, None) for name in ("core-a", "core-b")]
    Alert.objects.update(group=alerts[0].pk)

    page = desks.open_desk(person("operator")).open(notifications.group_list_path(alerts[0].pk))

    for one in alerts:
        expect(page.locator(f"#alert-{one.pk}")).to_be_in_viewport()
    expect(page.locator("#main summary").first).to_be_in_viewport()
