"""Minute rows and their retention."""

from datetime import timedelta

import pytest

from breakers.models import Alarm, BreakerState, Minute, Transition
from breakers.states import minutes, retention_rules
from breakers.tests.fleet import MINUTE, NOW, SECOND, dependency, minute, reports, transition
from controlplane.core import retention

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def test_a_minute_keeps_the_worst_and_the_most_at_once():
    about = dependency()
    reports("core/a1", "open")
    reports("core/a2", "half_open")
    reports("core/a3")
    reports("core/a4", "open", at=NOW - 31 * SECOND)
    minutes.sample_states(NOW)
    reports("core/a1", "closed", at=NOW + 10 * SECOND)
    reports("core/a2", "closed", at=NOW + 10 * SECOND)
    minutes.sample_states(NOW + 10 * SECOND)

    row = Minute.objects.get(dependency=about)

    assert row.minute == NOW.replace(second=0)
    assert (row.worst, row.open, row.half_open, row.instances) == (3, 1, 1, 3)


def test_counts_of_the_minute_are_left_alone():
    about = dependency()
    minute(about, success=7)
    reports("core/a1")

    minutes.sample_states(NOW)

    row = Minute.objects.get()
    assert (row.success, row.worst, row.instances) == (7, 1, 1)


def test_what_is_known_already_is_not_written_again():
    dependency()
    reports("core/a1")

    assert minutes.sample_states(NOW) == 1
    assert minutes.sample_states(NOW + SECOND) == 0
    assert minutes.sample_states(NOW + MINUTE - 29 * SECOND) == 0  # Nobody is fresh any more.


def test_old_history_is_deleted_and_the_rest_stays():
    about = dependency()
    for n, age in enumerate((36 * DAY, 34 * DAY)):
        transition(about, n, "closed>open", NOW - age)
    for age in (73, 71):
        minute(about, NOW - timedelta(hours=age))
    for closed_at in (NOW - 36 * DAY, None):
        Alarm.objects.create(
            rule="breaker_open",
            subject="core->oracle",
            severity="warning",
            value=1,
            limit=0,
            since=NOW - 40 * DAY,
            seen_at=NOW,
            closed_at=closed_at,
        )

    assert retention.purge(retention_rules.RULES, NOW, at_once=1, most=100) == 3

    assert Transition.objects.get().n == 1
    assert Minute.objects.get().minute > NOW - 3 * DAY
    assert Alarm.objects.get().closed_at is None


def test_states_of_earlier_boots_are_forgotten_after_a_day():
    dependency()
    dependency("core->vision")
    reports("core/a1", "open", at=NOW - 2 * DAY)
    reports("core/a1", of="core->vision", at=NOW, boot="2b7b0a5e-6f2b-4a2b-8a9c-0c8f6f1f2a11")

    retention.purge(retention_rules.RULES, NOW, at_once=10, most=100)

    assert BreakerState.objects.get().dependency.callee == "vision"
