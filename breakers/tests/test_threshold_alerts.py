"""Alerts about readings beyond a limit: opened once, resolved after two clean minutes."""

import pytest

from breakers.readings import openings
from breakers.readings.stopped import ENDED
from controlplane.core.models import Instance, Tick
from controlplane.core.outbox import renderer
from slo.alerts import lifecycle
from slo.models import Alert

from .alert_helpers import look, standing
from .fleet import (
    MINUTE,
    NOW,
    ORACLE,
    SECOND,
    dependency,
    doing,
    list_outbox_messages,
    minute,
    reachable,
    reports,
    transition,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _somewhere(settings):
    reachable(settings)


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ({"success": 90, "failure": 8, "timeout": 2}, "timeout_rate"),
        ({"success": 100, "retry": 11}, "retry_rate"),
        ({"success": 60, "rejected": 40, "fallback": 6}, "fallback_rate"),
        ({"success": 95, "failure": 18, "retry": 11, "fallback": 6}, "fallback_rate"),
    ],
)
def test_a_rate_beyond_its_limit_is_an_alarm(counts, rule):
    minute(dependency(), **counts)

    assert look(NOW) == 1

    assert standing() == {(rule, ORACLE)}


@pytest.mark.parametrize(
    "counts",
    [
        {"success": 90, "failure": 9, "timeout": 1},
        {"success": 100, "retry": 10},
        {"success": 95, "rejected": 5, "fallback": 5},
        {"success": 1, "timeout": 18},
    ],
)
def test_what_is_within_its_limit_or_rests_on_few_calls_is_none(counts):
    minute(dependency(), **counts)

    assert look(NOW) == 0


def test_minutes_are_added_up_and_old_ones_left_out():
    about = dependency()
    minute(about, NOW - MINUTE, success=10, timeout=1)
    minute(about, NOW, success=10, timeout=0)
    minute(about, NOW - 6 * MINUTE, success=100_000)

    look(NOW)

    assert standing() == {("timeout_rate", ORACLE)}
    assert Alert.objects.get().evidence["calls"] == 21


def test_an_open_breaker_is_an_alarm_told_in_its_own_thread():
    dependency(owner="search team", runbook_url="https://runbooks.example/oracle")
    reports("core/a1", "open")
    reports("core/a2")

    look(NOW)
    look(NOW + 10 * SECOND)

    (message,) = list_outbox_messages("slo.alert")
    assert message.subject == "dependency:core->oracle"
    notice = renderer.render(message.event, message.payload)
    assert notice.title == "The breaker of core → oracle is open in 1 of 2 instances"
    assert ("Owner", "search team") in notice.lines
    assert ("What to do", openings.TO_DO) in notice.lines
    alert = Alert.objects.get()
    assert (alert.path, alert.service) == ("/breakers/core/oracle/", "core")
    assert notice.path == f"/alerts/{alert.pk}/"


def test_alarms_that_go_on_keep_what_was_seen_last():
    minute(dependency(), success=50, timeout=50)
    reports("core/a1", "open")
    look(NOW)
    reports("core/a2", "open")

    assert look(NOW + 10 * SECOND) == 0

    alerts = {one.rule: (one.latest["value"], one.firing_at) for one in Alert.objects.all()}
    assert alerts == {
        "breaker_open": (2, NOW + 10 * SECOND),
        "timeout_rate": (0.5, NOW + 10 * SECOND),
    }


@pytest.mark.parametrize("mode", ["forced_open", "metrics_only", "reset"])
def test_what_an_operator_forces_has_not_tripped(mode):
    about = dependency()
    reports("core/a1", "open", mode=mode)
    transition(about, 1, "closed>open", NOW)

    assert look(NOW) == 0


def test_what_was_forced_for_a_moment_has_not_tripped():
    about = dependency()
    reports("core/a1", "closed")
    transition(about, 1, "closed>open", NOW, cause="override forced_open")

    assert look(NOW) == 0


def test_it_is_over_after_two_clean_minutes_and_told_in_the_thread():
    dependency()
    reports("core/a1", "open")
    look(NOW)
    reports("core/a1", "open", at=NOW + MINUTE)
    look(NOW + MINUTE)
    reports("core/a1", "closed", at=NOW + 2 * MINUTE)

    assert look(NOW + 2 * MINUTE) == 0
    assert look(NOW + 3 * MINUTE) == 1

    assert standing() == set()
    (message,) = list_outbox_messages("slo.alert_over")
    assert message.subject == "dependency:core->oracle"
    assert look(NOW + 4 * MINUTE) == 0


def test_a_full_bulkhead_is_an_alarm_over_all_instances_of_a_service():
    for name, in_flight in (("core/a1", 50), ("core/a2", 35)):
        Instance.objects.create(
            pk=name,
            service="core",
            reported_at=NOW,
            resilience={"bulkheads": {"llm": {"in_flight": in_flight, "limit": 50}}},
        )

    look(NOW)

    assert standing() == {("concurrency", "core/llm")}
    alert = Alert.objects.get()
    assert alert.evidence["value"] == pytest.approx(0.85)
    assert alert.summary == ("The bulkhead core/llm is 85 % full (limit 80 %; 2 instances)")


def test_silence_ends_no_alarm_until_it_has_lasted_five_minutes():
    dependency()
    reports("core/a1", "open")
    look(NOW)

    done = [look(NOW + minutes * MINUTE) for minutes in (1, 3, 5, 6)]
    after = look(NOW + 7 * MINUTE)

    assert done == [0, 0, 0, 0]
    assert after == 1


def test_clean_restarts_of_the_only_instance_are_one_alarm():
    dependency()
    for number in range(4):
        at = NOW + number * MINUTE
        reports(f"core/a{number}", "open", at=at)
        look(at)
        reports(f"core/a{number}", "open", at=at + 10 * SECOND, stopped=True)
        look(at + 10 * SECOND)

    assert (Alert.objects.count(), standing()) == (1, {("breaker_open", ORACLE)})
    assert len(list_outbox_messages("slo.alert")) == 1


def test_an_alarm_ends_when_its_caller_has_been_stopped_for_two_minutes():
    dependency()
    reports("core/a1", "open")
    look(NOW)
    reports("core/a1", "open", stopped=True)

    look(NOW + 10 * MINUTE)  # The console was off meanwhile.

    assert Alert.objects.get().resolved_because == ENDED


def test_a_short_job_whose_calls_all_time_out_is_an_alarm():
    about = dependency()
    minute(about, timeout=100)
    transition(about, 1, "closed>open", NOW)
    reports("core/a1", "open", stopped=True)

    look(NOW + 10 * SECOND)

    assert standing() == {("breaker_open", ORACLE), ("timeout_rate", ORACLE)}


def test_one_who_is_silent_begins_no_alarm():
    dependency()
    reports("core/a1", "open", at=NOW - MINUTE)

    assert look(NOW) == 0


def test_a_breaker_that_opened_between_two_looks_is_an_alarm_and_told_as_short():
    about = dependency()
    reports("core/a1")
    reports("core/a2")
    transition(about, 1, "closed>open", NOW - 8 * SECOND)
    transition(about, 2, "open>half_open", NOW - 5 * SECOND)

    assert look(NOW) == 1
    assert look(NOW + 10 * SECOND) == 0

    (message,) = list_outbox_messages("slo.alert")
    assert message.payload["said"] == (
        "The breaker of core → oracle opened for a moment, in 1 instance"
    )


@pytest.mark.parametrize(
    ("path", "at"),
    [("open>half_open", NOW), ("open>closed", NOW), ("closed>open", NOW - 6 * MINUTE)],
)
def test_what_did_not_open_just_now_is_no_alarm(path, at):
    transition(dependency(), 1, path, at)

    assert look(NOW) == 0


def test_a_trip_during_a_pause_of_the_clockwork_is_found_afterwards():
    about = dependency()
    Tick.objects.create(name="slo.thresholds", ran_at=NOW - 4 * MINUTE, ran_by="worker")
    transition(about, 1, "closed>open", NOW - 3 * MINUTE)

    assert look(NOW) == 1


def test_bulkheads_with_the_longest_names_are_alarms_of_their_own():
    names = {f"{'x' * 300}-{place}": {"in_flight": 9, "limit": 10} for place in range(2)}
    Instance.objects.create(
        pk="core/a1", service="core", reported_at=NOW, resilience={"bulkheads": names}
    )

    assert [look(NOW), look(NOW + 10 * SECOND)] == [2, 0]

    assert len(standing()) == 2


def test_more_than_three_at_once_are_told_together_and_end_together():
    for number in range(5):
        dependency(f"core->callee-{number}")
        reports("core/a1", "open", of=f"core->callee-{number}")
    look(NOW)
    for number in range(5):
        reports("core/a1", of=f"core->callee-{number}", at=NOW + 3 * MINUTE)

    look(NOW + 3 * MINUTE)

    assert not list_outbox_messages("slo.alert")
    assert not list_outbox_messages("slo.alert_over")
    (begun,) = list_outbox_messages("slo.alerts")
    assert begun.payload["count"] == 5
    (over,) = list_outbox_messages("slo.alerts_over")
    assert over.payload["count"] == 5
    assert begun.subject == over.subject == "alerts:many"


def test_a_storm_is_summed_up_once_a_minute():
    for place in range(12):
        name = f"core->callee-{place}"
        dependency(name)
        dependency(f"{name}-too")
        at = NOW + place * 10 * SECOND
        reports("core/a1", "open", of=name, at=at)
        reports("core/a1", "open", of=f"{name}-too", at=at)
        look(at)
    look(NOW + 130 * SECOND)

    counts = [one.payload["count"] for one in list_outbox_messages("slo.alerts")]
    assert len(list_outbox_messages("slo.alert")) == 2
    assert len(counts) == 3
    assert sum(counts) == 22


def test_a_fourth_within_a_minute_is_told_with_the_group():
    for number in range(4):
        dependency(f"core->callee-{number}")
    for number in range(3):
        reports("core/a1", "open", of=f"core->callee-{number}")
    look(NOW)
    reports("core/a1", "open", of="core->callee-3")

    look(NOW + 10 * SECOND)

    assert len(list_outbox_messages("slo.alert")) == 3
    assert [one.payload["count"] for one in list_outbox_messages("slo.alerts")] == [1]


@pytest.mark.django_db(transaction=True)
def test_who_comes_while_another_looks_leaves_it_to_that_one():
    dependency()
    reports("core/a1", "open")
    with doing(lambda: lifecycle.try_lock(lifecycle.THRESHOLDS_LOCK)):
        meanwhile = look(NOW)

    assert meanwhile == 0
    assert look(NOW) == 1
