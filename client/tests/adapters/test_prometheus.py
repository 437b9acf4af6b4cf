"""Metrics of a process for Prometheus."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from switchgear.adapters import prometheus
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters
from switchgear.refusals import BulkheadFull, CircuitOpen
from switchgear.testing import Console

ORACLE = {"caller": "core", "callee": "oracle"}


@pytest.fixture
def gear():
    gear = Console().client(service="core")
    yield gear
    gear.close()


@pytest.fixture
def registry():
    return CollectorRegistry()


def fails():
    raise ConnectionError("no route to host")


def test_state_and_counts_of_each_dependency_are_there(gear, registry):
    prometheus.expose(gear, registry)
    breaker = gear.breaker(
        "core->oracle", parameters=BreakerParameters(failure_count=2, open_seconds=60)
    )
    call = breaker(fails)

    def value(name, **labels):
        return registry.get_sample_value(f"switchgear_client_{name}", ORACLE | labels)

    breaker(lambda: None)()
    assert value("circuit_breaker_state") == 0
    assert value("circuit_breaker_trips_total") == 0
    assert value("circuit_breaker_failure_ratio") is None
    for _ in range(2):
        with pytest.raises(ConnectionError):
            call()
    with pytest.raises(CircuitOpen):
        call()

    assert value("circuit_breaker_state") == 1
    assert value("circuit_breaker_trips_total") == 1
    assert value("calls_total", result="success") == 1
    assert value("calls_total", result="failure") == 2
    assert value("calls_total", result="timeout") == 0
    assert value("calls_rejected_total") == 1
    assert value("calls_retry_total") == 0


def test_bulkhead_says_how_full_it_is_and_one_without_a_limit_nothing(gear, registry):
    prometheus.expose(gear, registry)
    gear.bulkhead("core->synapse")
    bulkhead = gear.bulkhead("core->oracle", BulkheadParameters(limit=1))

    with bulkhead, pytest.raises(BulkheadFull), bulkhead:
        pass
    with bulkhead:
        samples = {
            name: registry.get_sample_value(f"switchgear_client_bulkhead_{name}", ORACLE)
            for name in ("in_flight", "limit", "queued", "queue_limit", "rejected_total")
        }

    assert samples == {
        "in_flight": 1,
        "limit": 1,
        "queued": 0,
        "queue_limit": 0,
        "rejected_total": 1,
    }
    assert "synapse" not in "".join(
        line for line in generate_latest(registry).decode().splitlines() if "bulkhead" in line
    )


def test_names_that_no_console_could_have_make_no_series(gear, registry):
    prometheus.expose(gear, registry)
    gear.breaker("user 4711's own breaker")(lambda: None)()

    assert "4711" not in generate_latest(registry).decode()


def test_switches_and_versions_in_force_are_there(registry):
    console = Console()
    console.engage("segment:finance")
    gear = console.client(service="core")
    prometheus.expose(gear, registry)

    assert registry.get_sample_value("switchgear_client_switches_stopped") == 1
    assert registry.get_sample_value("switchgear_client_snapshot_version") == console.version
    gear.close()


def test_closed_metrics_are_taken_off_and_may_be_put_on_again(gear, registry):
    prometheus.expose(gear, registry).close()
    assert b"switchgear" not in generate_latest(registry)

    prometheus.expose(gear, registry)
    assert b"switchgear_client_switches_stopped" in generate_latest(registry)
