"""Readings of breakers and bulkheads for threshold rules."""

from datetime import timedelta

import pytest

from breakers.readings import openings, rates
from breakers.readings.stopped import ENDED
from breakers.tests.fleet import (
    MINUTE,
    NOW,
    ORACLE,
    SECOND,
    dependency,
    minute,
    reports,
    transition,
)
from controlplane.core.models import Instance
from controlplane.core.threshold_metrics import MetricQuery

pytestmark = pytest.mark.django_db


def metric_query(limit=0.01, minutes=5, comparison=">", **more):
    return MetricQuery("rate", comparison, limit, timedelta(minutes=minutes), **more)


def test_only_what_is_beyond_the_limit_is_named_and_what_had_been():
    minute(dependency("core->bad"), success=90, timeout=10)
    minute(dependency("core->good"), success=100)
    minute(dependency("core->better"), success=99, timeout=1)

    alone = {one.subject: one.beyond for one in rates.TIMEOUTS.read(metric_query(), NOW)}
    again = {
        one.subject: one.beyond
        for one in rates.TIMEOUTS.read(metric_query(standing=["core->better", "core->gone"]), NOW)
    }

    assert alone == {"core->bad": True}
    assert again == {"core->bad": True, "core->better": False}


def test_a_rate_is_of_the_calls_in_its_window():
    about = dependency()
    minute(about, NOW - 7 * MINUTE, timeout=50)
    minute(about, NOW, success=50)

    assert list(rates.TIMEOUTS.read(metric_query(minutes=5), NOW)) == []
    (readings,) = rates.TIMEOUTS.read(metric_query(minutes=10), NOW)
    assert (readings.value, readings.samples) == (0.5, 100)
    assert readings.summary == (
        "50 % of the calls of core → oracle timed out in 10 min (limit 1 %; 100 calls)"
    )


def test_a_limit_from_below_finds_what_is_too_rare():
    minute(dependency("core->never"), success=100)
    minute(dependency("core->often"), success=100, retry=20)

    readings = rates.RETRIES.read(metric_query(0.1, comparison="<"), NOW)

    assert [one.subject for one in readings] == ["core->never"]


def test_a_limit_is_exact_where_binary_fractions_are_not():
    minute(dependency("core->at"), success=90, timeout=10)
    minute(dependency("core->above"), success=899_999, timeout=100_001)

    assert [one.subject for one in rates.TIMEOUTS.read(metric_query(0.1), NOW)] == ["core->above"]


def test_one_that_was_taken_out_is_named_no_more():
    minute(dependency(removed_at=NOW), success=1, timeout=99)

    assert list(rates.TIMEOUTS.read(metric_query(standing=[ORACLE]), NOW)) == []


def test_a_breaker_says_in_how_many_instances_it_is_open_and_whom_to_ask():
    dependency(owner="search team", runbook_url="https://runbooks.example/oracle")
    for name, state in (("a1", "open"), ("a2", "open"), ("a3", "closed")):
        reports(f"core/{name}", state)

    (found,) = openings.read_open_breakers(MetricQuery("count", ">", 2), NOW)

    assert (found.value, found.beyond, found.samples) == (2, False, 3)
    assert (found.path, found.service) == ("/breakers/core/oracle/", "core")
    assert found.thread == "dependency:core->oracle"
    assert found.facts["owner"] == "search team"
    assert found.facts["runbook"] == "https://runbooks.example/oracle"


def test_a_forced_breaker_counts_as_an_instance_that_reports():
    dependency()
    reports("core/a1", "open")
    reports("core/a2", mode="forced_open")

    (found,) = openings.read_open_breakers(MetricQuery("count", ">", 0), NOW)

    assert found.summary == "The breaker of core → oracle is open in 1 of 2 instances"


def test_one_that_nobody_hears_of_is_not_fresh():
    dependency()
    reports("core/a1", "open", at=NOW - MINUTE)

    (found,) = openings.read_open_breakers(MetricQuery("count", ">", 0), NOW)

    assert (found.beyond, found.is_fresh) == (True, False)
    assert found.summary == "The breaker of core → oracle was open when its instances last reported"
    assert list(openings.read_open_breakers(MetricQuery("count", ">", 0), NOW + 5 * MINUTE)) == []


def test_what_opened_since_it_was_asked_last_is_found_however_late_that_is():
    about = dependency()
    transition(about, 1, "closed>open", NOW - 4 * MINUTE)

    lately = openings.read_open_breakers(MetricQuery("count", ">", 0, since=NOW - 10 * SECOND), NOW)
    late = openings.read_open_breakers(MetricQuery("count", ">", 0, since=NOW - 270 * SECOND), NOW)

    assert (len(list(lately)), len(list(late))) == (0, 1)


def test_a_share_that_rises_only_because_calls_leave_the_window_is_not_beyond_the_limit():
    about = dependency()
    minute(about, NOW - 4 * MINUTE, success=9900)
    minute(about, NOW, timeout=50)
    minute(about, NOW + MINUTE)  # The caller reports, but makes no calls.

    assert list(rates.TIMEOUTS.read(metric_query(), NOW + 2 * MINUTE)) == []
    (reading,) = rates.TIMEOUTS.read(metric_query(standing=[ORACLE]), NOW + 2 * MINUTE)
    assert reading.beyond
    minute(about, NOW + 2 * MINUTE, timeout=50)
    (reading,) = rates.TIMEOUTS.read(metric_query(), NOW + 2 * MINUTE)
    assert reading.beyond


@pytest.mark.parametrize("standing", [[ORACLE], []])
def test_readings_end_when_the_caller_has_been_stopped_for_two_minutes(standing):
    about = dependency()
    transition(about, 1, "closed>open", NOW + 50 * SECOND)
    minute(about, NOW, success=50, timeout=50)
    reports("core/a1", "open", stopped=True)

    assert read_all(standing, NOW + 2 * MINUTE) == [
        ("breaker_open", True, ""),
        ("timeout_rate", True, ""),
    ]
    assert read_all(standing, NOW + 2 * MINUTE + SECOND) == [
        ("breaker_open", None, ENDED),
        ("timeout_rate", None, ENDED),
    ]


def read_all(standing, now):
    """Return metric, beyond and ended of the readings of open breakers and of timeouts."""
    since = NOW - MINUTE
    query = MetricQuery("count", ">", 0, since=since, standing=standing)
    opened = openings.read_open_breakers(query, now)
    late = rates.TIMEOUTS.read(metric_query(standing=standing), now)
    return [("breaker_open", one.beyond, one.ended) for one in opened] + [
        ("timeout_rate", one.beyond, one.ended) for one in late
    ]


def test_a_bulkhead_is_that_of_all_instances_of_a_service_that_report():
    for name, in_flight, at in (("a1", 9, NOW), ("a2", 5, NOW), ("a3", 10, NOW - MINUTE)):
        held = {"llm": {"in_flight": in_flight, "limit": 10}}
        Instance.objects.create(
            pk=f"core/{name}", service="core", reported_at=at, resilience={"bulkheads": held}
        )
    stopped = {"reported_at": NOW, "heard_at": NOW, "stopped_at": NOW}
    Instance.objects.create(pk="core/a4", service="core", resilience={"bulkheads": held}, **stopped)
    polling = {**stopped, "heard_at": NOW + SECOND}
    Instance.objects.create(pk="core/a5", service="core", resilience={"bulkheads": held}, **polling)

    (readings,) = rates.read_concurrency(MetricQuery("now", ">", 0.7), NOW)

    assert (readings.subject, readings.value, readings.beyond) == ("core/llm", 0.7, False)
    assert readings.samples == 2
    assert readings.thread == "bulkhead:core/llm"
