"""Breaker counts are summed by minute from increments; lost rather than counted twice."""

from datetime import timedelta

import psycopg
import pytest
from django.db import connection

from breakers.models import Dependency, Minute
from controlplane.dataplane.ingest import breaker_writer
from controlplane.dataplane.ingest.breaker_writer import MinuteSums
from controlplane.dataplane.ingest.minute_shares import MAX_LOOKBACK
from controlplane.dataplane.tests.breaker_reports import (
    NEXT_BOOT,
    OPENED,
    Reporting,
    at_work,
    breaker,
    make_report,
)
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import BOOT, NOW

__all__ = ["at_work"]
pytestmark = pytest.mark.usefixtures("published")


def test_counters_add_to_the_minute_by_what_they_add_increment(at_work: Reporting) -> None:
    at_work.clock.now = NOW + timedelta(seconds=10)
    at_work.report(
        make_report(breaker(counters={"success": 100}), started_at="2026-11-21T12:00:05Z")
    )
    at_work.report(make_report(breaker(counters={"success": 130, "fallback": 4}), seq=2), after=5)
    at_work.report(make_report(breaker(counters={"success": 130, "fallback": 4}), seq=2), after=5)
    at_work.flushed()
    at_work.report(make_report(breaker(counters={"success": 131, "fallback": 9}), seq=3), after=5)
    at_work.flushed()

    minute = Minute.objects.get()
    assert (minute.minute, minute.success, minute.fallback) == (NOW, 131, 9)
    assert Dependency.objects.get().fallback_total == 9


def test_counts_of_a_boot_that_may_have_been_counted_before_add_nothing(
    at_work: Reporting,
) -> None:
    for number in range(4):
        for boot in (BOOT, NEXT_BOOT):
            at_work.report(
                make_report(breaker(counters={"success": 1000}), boot=str(boot), started_at=None,
                     seq=number), after=1)  # fmt: skip
    at_work.flushed()

    assert not Minute.objects.exists()


def test_a_report_after_a_silence_is_spread_over_the_minutes_it_tells_of(
    at_work: Reporting,
) -> None:
    at_work.report(make_report(breaker(counters={"success": 0})))
    at_work.report(make_report(breaker(counters={"success": 300}), seq=2), after=150)
    at_work.flushed()

    found = dict(Minute.objects.values_list("minute", "success"))
    assert found == {
        NOW: 120,
        NOW + timedelta(minutes=1): 120,
        NOW + timedelta(minutes=2): 60,
    }


def test_a_dependency_that_is_being_changed_gets_its_totals_later(
    at_work: Reporting, idle: Following
) -> None:
    at_work.report(make_report(breaker(transitions=[OPENED])))
    holder = psycopg.connect(idle.config.database_url, autocommit=True)
    try:
        holder.execute("BEGIN; SELECT * FROM breakers_dependency FOR UPDATE")
        at_work.ledger._breaker_writer._flushed_at = float("-inf")
        at_work.report(make_report(breaker(), seq=2))
        at_work.report(make_report(breaker(), seq=3))  # Written after the attempt.
        assert Dependency.objects.get().trips_total == 0
    finally:
        holder.close()
    at_work.flushed()

    assert Dependency.objects.get().trips_total == 1


def test_counters_that_are_left_out_or_go_down_are_counted_once(at_work: Reporting) -> None:
    records = [
        {"success": 100, "retry": 10},
        {"success": 110},
        {"success": 50, "retry": 10},
        {},
        {"success": 115, "retry": 12},
    ]
    at_work.report(make_report(breaker(counters={"success": 100, "retry": 10})))
    for seq, counters in enumerate(records, start=2):
        at_work.report(make_report(breaker(counters=counters), seq=seq), after=0.2)
    at_work.report(make_report(breaker(), seq=9), after=0.2)  # A breaker without counters.
    at_work.report(make_report(breaker(counters={"success": 116, "retry": 12}), seq=10), after=0.2)
    at_work.flushed()

    minute = Minute.objects.get(minute=NOW)
    assert (minute.success, minute.retry) == (16, 2)


def test_one_number_that_is_too_large_keeps_no_other_from_being_written(
    at_work: Reporting,
) -> None:
    at_work.report(make_report(breaker(), breaker("core->redis")))
    largest = 2**63 - 1
    huge = Dependency.objects.get(callee="oracle")
    Dependency.objects.filter(pk=huge.pk).update(trips_total=largest, fallback_total=largest)
    Minute.objects.create(dependency=huge, minute=NOW, success=largest)
    counters = {"success": 2**53, "fallback": 2**53}

    at_work.report(
        make_report(
            breaker(counters=counters, transitions=[OPENED]),
            breaker("core->redis", counters={"success": 7, "fallback": 3}),
            seq=2,
        )
    )
    at_work.flushed()

    other = Dependency.objects.get(callee="redis")
    assert (other.fallback_total, Minute.objects.get(dependency=other).success) == (3, 7)
    huge.refresh_from_db()
    assert 2**62 < huge.fallback_total < 2**63


def test_totals_are_written_though_minutes_are_not(at_work: Reporting) -> None:
    at_work.report(make_report(breaker()))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE breakers_minute ADD CONSTRAINT refused CHECK (success < 5)")
    try:
        at_work.report(make_report(breaker(counters={"success": 9, "fallback": 9}), seq=2))
        at_work.flushed()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE breakers_minute DROP CONSTRAINT refused")

    assert not Minute.objects.exists()
    assert Dependency.objects.get().fallback_total == 9


def test_sums_stay_within_what_the_database_holds() -> None:
    minutes = MinuteSums()
    for _ in range(3):
        minutes.add_counts(1, NOW, NOW, (2**53,) * 7)

    assert counted(minutes) == [2**53]
    assert minutes.take_totals() == {1: [0, 2**53]}


def test_sums_are_written_within_some_seconds() -> None:
    assert breaker_writer.FLUSH_SECONDS <= 10


def counted(minutes: MinuteSums) -> list[int]:
    return [one[0] for one in minutes.take_sums().values()]


def test_whole_numbers_that_are_spread_add_up() -> None:
    minutes = MinuteSums()
    minutes.add_counts(
        1, NOW - timedelta(seconds=95), NOW + timedelta(seconds=7), (101, 0, 0, 0, 0, 3, 0)
    )

    found = counted(minutes)

    assert (sum(found), len(found)) == (101, 3)


def test_what_lies_further_back_than_an_hour_is_left_out_of_the_minutes_alone() -> None:
    minutes = MinuteSums()
    minutes.add_counts(1, NOW - timedelta(days=1), NOW, (86_400, 0, 0, 0, 0, 7, 0))

    sums, totals = minutes.take_sums(), minutes.take_totals()

    assert len(sums) <= MAX_LOOKBACK
    assert sum(one[0] for one in sums.values()) == pytest.approx(3600, abs=60)
    assert totals == {1: [0, 7]}


def test_sums_are_bounded_and_what_is_left_out_is_counted() -> None:
    minutes = MinuteSums(most=10)
    for dependency in range(100):
        minutes.add_counts(dependency, NOW, NOW, (1, 0, 0, 0, 0, 0, 0))

    assert minutes.left_out == 90
    assert len(counted(minutes)) == 10
