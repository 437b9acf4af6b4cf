"""Prometheus metrics of breakers."""

import pytest

from breakers import metrics
from breakers.degradation_causes import report_causes as look_at_conditions
from breakers.models import Dependency, Probe
from breakers.outages import services as outages
from breakers.services import overrides
from breakers.tests.fleet import NOW, SECOND, dependency, reports, service
from breakers.tests.house import forced

pytestmark = pytest.mark.django_db


def read_samples(source, now=NOW):
    """Return values by name and labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in source(now)
        for sample in family.samples
    }


def test_the_state_is_that_of_the_worst_instance_that_reports():
    for callee, states in {"a": ["closed"], "b": ["closed", "half_open"], "c": ["open"]}.items():
        dependency(f"core->{callee}")
        for number, state in enumerate(states):
            reports(f"core/{number}", state, of=f"core->{callee}")
    reports("core/0", "half_open", of="core->c")
    reports("core/1", "open", of="core->c")
    dependency("core->silent")
    reports("core/old", "open", of="core->silent", at=NOW - 31 * SECOND)
    reports("core/stopped", "open", of="core->a", stopped=True)

    samples = read_samples(metrics.collect_breakers)

    name = "switchgear_circuit_breaker_state"
    assert [samples.get((name, "core", callee)) for callee in "abc"] == [0, 2, 1]
    assert (name, "core", "silent") not in samples
    by_state = {
        state: samples["switchgear_dependencies", state]
        for state in ("closed", "open", "half_open", "unknown")
    }
    assert by_state == {"closed": 1, "open": 1, "half_open": 1, "unknown": 1}


def test_a_dependency_that_nobody_ever_reported_is_only_counted():
    dependency("core->oracle")

    samples = read_samples(metrics.collect_breakers)

    assert [name for name, *_ in samples if name != "switchgear_dependencies"] == []
    assert samples["switchgear_dependencies", "unknown"] == 1


def test_a_dependency_that_reports_has_its_counters_from_zero():
    dependency("core->oracle")
    reports("core/a1", "closed")

    samples = read_samples(metrics.collect_breakers)

    assert samples["switchgear_circuit_breaker_trips_total", "core", "oracle"] == 0
    assert samples["switchgear_circuit_breaker_fallback_total", "core", "oracle"] == 0


def test_totals_only_grow_and_outlive_what_they_count():
    dependency()
    Dependency.objects.update(trips_total=7, fallback_total=90)

    samples = read_samples(metrics.collect_breakers)

    assert samples["switchgear_circuit_breaker_trips_total", "core", "oracle"] == 7
    assert samples["switchgear_circuit_breaker_fallback_total", "core", "oracle"] == 90


def test_overrides_are_told_by_mode_and_go_back_to_zero():
    forced(dependency(), NOW, "disabled", expires_in="2m")
    during = read_samples(metrics.collect_overrides)
    overrides.expire_due_overrides(NOW + 120 * SECOND)

    after = read_samples(metrics.collect_overrides)

    assert during["switchgear_breaker_overrides", "disabled"] == 1
    assert after["switchgear_breaker_overrides", "disabled"] == 0
    assert after["switchgear_breaker_overrides", "forced_open"] == 0


def test_outages_probes_and_the_level_are_told():
    dependency(on_outage={"action": "trip", "switch": "segment:oracle", "for_seconds": 2})
    assert read_samples(metrics.collect_alarms)["switchgear_breaker_alarms", "outage"] == 0
    reports("core/a1", "open")
    service("redis", probe_url="tcp://redis:6379")
    Probe.objects.create(service_id="redis", is_away=True, since=NOW)
    outages.watch_outages(NOW)
    look_at_conditions(NOW)

    assert read_samples(metrics.collect_alarms)["switchgear_breaker_alarms", "outage"] == 1
    samples = read_samples(metrics.collect_degradation)
    assert samples["switchgear_degradation_level",] >= 1
    assert samples["switchgear_probe_up", "redis"] == 0
