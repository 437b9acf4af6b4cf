"""Packed hours and deleted history: look-ups of what is kept stay the same."""

from datetime import timedelta

import pytest

from slo import retention_rules
from slo.counters import compaction, reader, retention
from slo.models import CounterHour, CounterMinute, DeltaBatch, Series, Sli, StoredSample
from slo.models.counters import IMPORTED

from .sample_helpers import (
    MINUTE,
    NOW,
    SentSample,
    load_counters,
    moment_at,
    objective,
    record,
    sample,
)

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
HOUR = MINUTE // 60


def push(sli: Sli, *minutes_ago: float, source: str = "a") -> None:
    """Record an event a minute."""
    samples = [sample(sli, -60 * ago, 1e6 - ago, 1e6 - ago, source=source) for ago in minutes_ago]
    record(samples, now=NOW, at_once=True, is_noted=True)


def push_pairs(sli: Sli, *minutes_ago: float) -> None:
    """Record an event in the minute after each of these, and none in between."""
    for number, ago in enumerate(minutes_ago):
        samples = [sample(sli, -60 * ago + 60 * n, number + n, number + n) for n in (0, 1)]
        record(samples, now=NOW, at_once=True, is_noted=True)


def test_whole_hours_older_than_three_days_are_packed(sli: Sli) -> None:
    push(sli, *range(150, -1, -1))
    before = load_counters(sli, MINUTE - 200, MINUTE)

    assert compaction.compact_minutes(NOW + 3 * DAY - timedelta(minutes=30), most=1000) == 90

    assert list(CounterHour.objects.values_list("hour", flat=True).order_by("hour")) == [
        HOUR - 3,
        HOUR - 2,
    ]
    assert CounterMinute.objects.order_by("minute").first().minute == (HOUR - 1) * 60  # type: ignore[union-attr]
    assert load_counters(sli, MINUTE - 200, MINUTE) == before
    assert compaction.compact_minutes(NOW + 3 * DAY - timedelta(minutes=30), most=1000) == 0


def test_long_history_is_packed_some_hours_at_a_time(sli: Sli) -> None:
    push(sli, *range(70 * 60, -1, -1))
    before = load_counters(sli, MINUTE - 80 * 60, MINUTE)

    compaction.compact_minutes(NOW + 4 * DAY, most=100_000)

    assert CounterMinute.objects.count() == 0
    assert CounterHour.objects.count() == 71
    assert load_counters(sli, MINUTE - 80 * 60, MINUTE) == before


def test_outage_of_days_costs_no_rows(sli: Sli) -> None:
    push(sli, 5000, 4999)
    compaction.compact_minutes(NOW + 4 * DAY, most=1000)
    push(sli, 0, source="b")

    assert CounterMinute.objects.count() == 1
    assert [row[:2] for row in load_counters(sli, MINUTE - 4000, MINUTE)] == [(1, 1)] * 4001


def test_what_comes_into_packed_hours_is_put_there(sli: Sli) -> None:
    push(sli, *range(300, -1, -1))
    compaction.compact_minutes(NOW + 3 * DAY - timedelta(hours=2), most=1000)
    before = load_counters(sli, MINUTE - 400, MINUTE)
    hours = CounterHour.objects.count()

    push(sli, 350, 340, 250, 5, source="late")

    after = load_counters(sli, MINUTE - 400, MINUTE)
    grown = [b[1] - a[1] for a, b in zip(before, after, strict=True)]
    assert grown[400 - 350] == 0
    assert grown[400 - 345] == 5
    assert grown[400 - 250] == 100
    assert grown[-1] == 345
    assert [row[2] for row in after[100:]] == [row[2] for row in before[100:]]
    assert CounterHour.objects.count() == hours + 1


def test_first_minute_after_what_is_packed_can_still_be_covered(sli: Sli) -> None:
    push(sli, *range(300, 200, -1))
    compaction.compact_minutes(NOW + 3 * DAY - timedelta(hours=1), most=1000)
    record([sample(sli, -600, 5, 5, source="b")], now=NOW)

    record([sample(sli, -630, 5, 5, source="b")], now=NOW)

    assert [row[2] for row in load_counters(sli, MINUTE - 11, MINUTE - 9)] == [99, 100, 100]


def test_history_before_what_is_packed_goes_before_it(sli: Sli) -> None:
    push(sli, *range(120, -1, -1))
    compaction.compact_minutes(NOW + 3 * DAY - timedelta(hours=1), most=1000)

    push(sli, 10_000, 9_999, 9_998, source=IMPORTED)

    assert load_counters(sli, MINUTE - 10_000, MINUTE - 9_998) == [(0, 0, 0), (1, 1, 1), (2, 2, 2)]
    assert load_counters(sli, MINUTE, MINUTE) == [(122, 122, 122)]
    sli.refresh_from_db()
    assert sli.first == MINUTE - 10_000


def test_what_is_beyond_the_period_is_forgotten_and_nothing_seems_new(sli: Sli) -> None:
    push_pairs(sli, 60 * 24 * 36, 100)
    compaction.compact_minutes(NOW + 30 * DAY, most=10**6)
    before = load_counters(sli, MINUTE - 200, MINUTE)

    retention.purge_old(NOW + 30 * DAY, at_once=100, most=100_000)

    sli.refresh_from_db()
    kept = (MINUTE - 99) // 60 - 35 * 24
    assert sli.first == kept * 60
    assert load_counters(sli, MINUTE - 200, MINUTE) == before
    assert reader.load_counts({sli.pk: [5, sli.first - 1]})[sli.pk, 5][1] > 0
    beyond = load_counters(sli, sli.first - 50, sli.first - 1)
    assert len({row[:2] for row in beyond}) == 1
    history = reader.load_history(sli.pk, sli.first - 2, MINUTE)
    assert history.counts_at(MINUTE) - history.counts_at(sli.first - 1) == (
        before[-1][0] - beyond[0][0],
        before[-1][1] - beyond[0][1],
        1,
    )


def test_history_goes_by_its_own_last_row_and_its_period(sli: Sli) -> None:
    long = objective("long", window_days=90)
    push_pairs(sli, 60 * 24 * 400, 60 * 24 * 370)
    push_pairs(long, 60 * 24 * 94, 0)
    compaction.compact_minutes(NOW, most=10**6)
    hours = CounterHour.objects.count()

    retention.purge_old(NOW, at_once=100, most=100_000)

    assert CounterHour.objects.count() == hours


def test_samples_are_kept_as_long_as_something_may_come_before(sli: Sli) -> None:
    push(sli, 26 * 60, 25 * 60 + 5, 25 * 60 - 5, 0)
    push(sli, 26 * 60, source="dead")
    push(sli, 26 * 60, 0, source=IMPORTED)

    assert retention.purge_samples(NOW, at_once=10, most=100) == 2

    kept = StoredSample.objects.filter(series__source="a").values_list("minute", flat=True)
    assert sorted(kept) == [MINUTE - 25 * 60 - 5, MINUTE - 25 * 60 + 5, MINUTE]
    assert StoredSample.objects.filter(series__source=IMPORTED).count() == 2
    assert retention.purge_samples(NOW, at_once=10, most=100) == 0


def test_late_sample_after_a_long_gap_finds_what_was_before_it(sli: Sli) -> None:
    push(sli, 40 * 60, 0)
    retention.purge_samples(NOW, at_once=10, most=100)

    record([sample(sli, -20 * 3600, 1e6 - 40 * 60, 1e6 - 40 * 60)], now=NOW)

    assert load_counters(sli, MINUTE - 20 * 60, MINUTE - 20 * 60)[0][:2] == (0, 0)
    assert load_counters(sli, MINUTE, MINUTE)[0][:2] == (2400, 2400)


def test_boots_that_are_gone_are_forgotten_but_their_source_is_known(
    sli: Sli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MAX_BOOTS_KEPT", 1)
    for boot, days in (("1", 20), ("2", 10), ("3", 9)):
        samples = SentSample(sli.pk, "a", boot, NOW - days * DAY, 5, 5)
        record([samples], now=NOW, at_once=True, is_noted=True)
    retention.purge_samples(NOW, at_once=10, most=100)
    retention.purge_old(NOW, at_once=10, most=100)

    assert [one.boot for one in Series.objects.all()] == ["3"]
    record([SentSample(sli.pk, "a", "4", NOW, 7, 7)], now=NOW)
    assert load_counters(sli, MINUTE, MINUTE)[0][:2] == (17, 17)


def test_batches_are_forgotten_when_nobody_repeats_them() -> None:
    for days in (9, 7):
        DeltaBatch.objects.create(sender="a", batch_id=str(days), received_at=NOW - days * DAY)

    retention_rules.purge_rows(moment_at(0), at_once=10, most=100)

    assert [one.batch_id for one in DeltaBatch.objects.all()] == ["7"]
