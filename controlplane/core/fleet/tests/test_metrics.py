"""Metrics of the fleet, for Prometheus and for threshold rules."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.fleet import alarms, metrics, threshold_metrics
from controlplane.core.fleet.tests.rows import create_process, publish
from controlplane.core.threshold_metrics import ABOVE, MetricQuery

pytestmark = pytest.mark.django_db
ABOVE_10_S = MetricQuery("now", ABOVE, 10_000)


@pytest.fixture
def now():
    now = db_now()
    publish(now)
    create_process("dp-1", now)
    create_process("eu-1", now, upstream="dp-1", silent_for=90)
    create_process("eu-2", now, upstream="dp-1", version=None, age_seconds=None)
    return now


def test_prometheus_metrics_count_states_and_give_the_lag_of_each(now):
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in metrics.collect_fleet(now)
        for sample in family.samples
    }

    assert samples.pop(("switchgear_fleet_lag_seconds", "dp-1")) == pytest.approx(1.4)
    assert samples.pop(("switchgear_fleet_lag_seconds", "eu-1")) == pytest.approx(90.4)
    assert {key: value for key, value in samples.items() if value} == {
        ("switchgear_fleet_members", "data plane", "current"): 1,
        ("switchgear_fleet_members", "relay", "silent"): 1,
        ("switchgear_fleet_members", "relay", "empty"): 1,
        ("switchgear_fleet_instances", "dp-1"): 12,
        ("switchgear_fleet_instances", "eu-2"): 12,
    }
    assert samples["switchgear_fleet_members", "relay", "lagging"] == 0


def test_threshold_metric_gives_the_lag_of_each(now):
    found = {one.subject: one for one in threshold_metrics.read_lag(ABOVE_10_S, now)}

    assert {name: (one.value, one.beyond) for name, one in found.items()} == {
        "dp-1": (1_400, False),
        "eu-1": (90_400, True),
    }
    assert found["eu-1"].summary == "The relay eu-1 was last known to be current 90,400 ms ago"


def test_threshold_alert_ends_when_its_subject_is_gone(now):
    query = MetricQuery("now", ABOVE, 10_000, standing=["us-1"])

    (gone,) = [one for one in threshold_metrics.read_lag(query, now) if one.subject == "us-1"]

    assert gone.ended == "us-1 stopped, or was not heard for a day."


def test_attention_lists_an_open_alarm_instead_of_the_threshold_alert(now):
    alarms.update_alarms(now)

    assert threshold_metrics.list_escalated(now) == {"eu-1", "eu-2"}
