"""Errors of a ramp's phases: whole minutes of the SLOs of services that check the switch."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.instances.models import Instance
from slo.arithmetic.minutes import end_of, last_ended
from slo.ramp_errors import MAX_SLOS, read_phase_errors
from switches.tests.browsers import browser_as, page, text
from switches.tests.ramps import QUICK, start_ramp

from . import factories

pytestmark = pytest.mark.django_db


def test_each_phase_has_the_events_of_its_whole_minutes():
    last = last_ended(db_now())
    slo = factories.slo(service="core")
    factories.slo("elsewhere", service="web")
    rows = [(last - 20, 0.0, 0.0), (last - 10, 990.0, 1000.0), (last, 1040.0, 1100.0)]
    factories.counted(slo, rows)
    phases = [
        (end_of(last - 20), end_of(last - 10)),
        (end_of(last - 10), end_of(last) + timedelta(seconds=30)),
        (end_of(last) + timedelta(seconds=5), end_of(last) + timedelta(seconds=50)),
    ]

    (found,) = read_phase_errors({"core"}, (), phases)

    assert (found.name, found.path) == ("core-availability", "/slos/core-availability/")
    assert found.counts == ((10.0, 1000.0), (50.0, 100.0), None)


def test_slos_of_gates_come_first_whatever_service_they_measure():
    last = last_ended(db_now())
    for name, service in (
        *((f"core-{number}", "core") for number in range(MAX_SLOS)),
        ("web-answers", "web"),
        ("web-latency", "web"),
    ):
        rows = [(last - 2, 0.0, 0.0), (last, 9.0, 10.0)]
        factories.counted(factories.slo(name, service=service), rows)

    found = read_phase_errors({"core"}, {"web-answers"}, [(end_of(last - 1), end_of(last))])

    assert [(one.name, one.is_gate) for one in found] == [
        ("web-answers", True),
        *((f"core-{number}", False) for number in range(MAX_SLOS - 1)),
    ]


def test_ramp_page_shows_rates_and_says_what_they_count():
    ramp = start_ramp("segment:finance", plan=QUICK)
    Instance.objects.create(id="core/a1", service="core", checks={"segment:finance": []})
    last = last_ended(db_now())
    slo = factories.slo(service="core")
    factories.counted(slo, [(last - 20, 0.0, 0.0), (last, 1990.0, 2000.0)])

    seen = text(page(browser_as("viewer").get(f"/ramps/{ramp.pk}/")))

    assert "Error rate by phase" in seen
    assert "Services don't report allowed and blocked calls separately." in seen
    assert "Before engaging 100 %" in seen
    assert "0.5 % of" in seen
    assert seen.count("Not counted: no full minute") == 2


def test_ramp_page_shows_the_slo_of_its_gate():
    plan = [{**step, "gates": [{"type": "slo", "slo": "web-answers"}]} for step in QUICK]
    ramp = start_ramp("segment:finance", plan=plan)
    last = last_ended(db_now())
    slo = factories.slo("web-answers", service="web")
    factories.counted(slo, [(last - 20, 0.0, 0.0), (last, 1990.0, 2000.0)])

    html = page(browser_as("viewer").get(f"/ramps/{ramp.pk}/"))

    assert "web-answers gate" in text(html)
    assert 'data-label="web-answers (gate)"' in html


def test_ramp_page_without_slo_invents_nothing():
    ramp = start_ramp("segment:finance", plan=QUICK)

    seen = text(page(browser_as("viewer").get(f"/ramps/{ramp.pk}/")))

    assert "No SLO counts events of a service that checks this switch." in seen
