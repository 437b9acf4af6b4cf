"""Alarms from what is reported: begun once, told once, and over after two clean minutes."""

import threading

import pytest
from django.db import connection, transaction

from breakers import turns
from breakers.alarms.services import look
from breakers.models import Alarm
from breakers.tests.fleet import (
    MINUTE,
    NOW,
    ORACLE,
    SECOND,
    dependency,
    minute,
    reachable,
    reports,
    told,
)
from controlplane.core.models import Instance
from controlplane.core.outbox import wordings

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _somewhere(settings):
    reachable(settings)


def standing():
    return set(
        Alarm.objects.filter(closed_at__isnull=True).values_list("rule", "subject").distinct()
    )


@pytest.mark.parametrize(
    ("counts", "rule"),
    [
        ({"success": 97, "failure": 3, "timeout": 3}, "timeout_rate"),
        ({"success": 100, "retry": 11}, "retry_rate"),
        ({"success": 60, "rejected": 40, "fallback": 6}, "fallback_rate"),
    ],
)
def test_a_rate_beyond_its_limit_is_an_alarm(counts, rule):
    minute(dependency(), **counts)

    assert look(NOW) == 1

    assert standing() == {(rule, ORACLE)}


@pytest.mark.parametrize(
    "counts",
    [
        {"success": 99, "failure": 1, "timeout": 1},
        {"success": 100, "retry": 10},
        {"success": 95, "rejected": 5, "fallback": 5},
        {"success": 1, "timeout": 18, "failure": 18},
    ],
)
def test_what_is_within_its_limit_or_rests_on_few_calls_is_none(counts):
    minute(dependency(), **counts)

    assert look(NOW) == 0


def test_minutes_are_added_up_and_old_ones_left_out():
    about = dependency()
    minute(about, NOW - MINUTE, success=10, timeout=1, failure=1)
    minute(about, NOW, success=10, timeout=0)
    minute(about, NOW - 6 * MINUTE, success=100_000)

    look(NOW)

    assert standing() == {("timeout_rate", ORACLE)}
    assert Alarm.objects.get().evidence["calls"] == 21


def test_an_open_breaker_is_an_alarm_told_in_its_own_thread():
    dependency(owner="search team", runbook_url="https://runbooks.example/oracle")
    reports("core/a1", "open")
    reports("core/a2")

    look(NOW)
    look(NOW + 10 * SECOND)

    (message,) = told("breaker.alarm")
    assert message.subject == "dependency:core->oracle"
    notice = wordings.notice(message.event, message.payload)
    assert notice.title == "The breaker of core->oracle is open in 1 of 2 instances"
    assert ("Owner", "search team") in notice.lines
    assert notice.path == "/breakers/core/oracle/"


def test_alarms_that_go_on_keep_what_was_seen_last():
    minute(dependency(), success=50, timeout=50, failure=50)
    reports("core/a1", "open")
    look(NOW)
    reports("core/a2", "open")

    assert look(NOW + 10 * SECOND) == 0

    kept = {one.rule: (one.value, one.seen_at) for one in Alarm.objects.all()}
    assert kept == {
        "breaker_open": (2, NOW + 10 * SECOND),
        "timeout_rate": (0.5, NOW + 10 * SECOND),
    }


def test_what_an_operator_forces_open_has_not_tripped():
    dependency()
    reports("core/a1", "open", mode="forced_open")

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
    (message,) = told("breaker.alarm_over")
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
    alarm = Alarm.objects.get()
    assert alarm.value == pytest.approx(0.85)
    assert alarm.evidence["said"] == (
        "The bulkhead core/llm is 85 % full (80 % at most; 2 instances)"
    )


def test_more_than_three_at_once_are_told_together_and_end_together():
    for number in range(5):
        dependency(f"core->callee-{number}")
        reports("core/a1", "open", of=f"core->callee-{number}")

    look(NOW)
    look(NOW + 3 * MINUTE)

    assert not told("breaker.alarm")
    assert not told("breaker.alarm_over")
    (begun,) = told("breakers.alarms")
    assert begun.payload["count"] == 5
    (over,) = told("breakers.alarms_over")
    assert over.payload["count"] == 5


def test_a_fourth_within_a_minute_is_told_with_the_group():
    for number in range(4):
        dependency(f"core->callee-{number}")
    for number in range(3):
        reports("core/a1", "open", of=f"core->callee-{number}")
    look(NOW)
    reports("core/a1", "open", of="core->callee-3")

    look(NOW + 10 * SECOND)

    assert len(told("breaker.alarm")) == 3
    assert [one.payload["count"] for one in told("breakers.alarms")] == [1]


@pytest.mark.django_db(transaction=True)
def test_who_comes_while_another_looks_leaves_it_to_that_one():
    dependency()
    reports("core/a1", "open")
    held, done = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            turns.alone("alarms")
            held.set()
            done.wait(10)
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    held.wait(10)

    meanwhile = look(NOW)
    done.set()
    other.join(10)

    assert meanwhile == 0
    assert look(NOW) == 1
