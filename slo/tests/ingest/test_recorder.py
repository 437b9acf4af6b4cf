"""Recording samples of a source, one rule at a time."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from controlplane.core.gates.models import EventCount
from slo.ingest.series_store import THIN_ABOVE
from slo.models import CounterMinute, Series, Sli

from .sample_helpers import (
    MINUTE,
    NOW,
    SentSample,
    load_counters,
    moment_at,
    record,
    sample,
)

pytestmark = pytest.mark.django_db

Values = tuple[Any, ...]
"""Seconds after NOW, good and total of a sample, and any other fields as a dict."""


def add(*samples: SentSample) -> int:
    return sum(record(samples, now=NOW).values())


def add_batch(sli: Sli, batch: Iterable[Values]) -> None:
    add(*(sample(sli, *values[:3], **dict(*values[3:])) for values in batch))


def total(sli: Sli, minute: int = MINUTE) -> tuple[float, float, int]:
    return load_counters(sli, minute, minute)[0]


def test_first_sample_of_a_source_is_what_is_counted_from(sli: Sli) -> None:
    add(sample(sli, -60, 90, 100))
    assert total(sli) == (0, 0, 0)

    add(sample(sli, 0, 95, 110))

    assert total(sli) == (5, 10, 1)
    sli.refresh_from_db()
    assert (sli.first, sli.last) == (MINUTE - 1, MINUTE)


@pytest.mark.parametrize(
    ("batches", "by_minute"),
    [
        pytest.param(
            [[(0, 90, 100, {"started_at": moment_at(-90)})]],
            [(0, 0, 0), (0, 0, 1), (90, 100, 2)],
            id="a first sample counts from its start",
        ),
        pytest.param(
            [[(0, 90, 100, {"started_at": moment_at(-600)})]],
            [(72, 80, 0), (81, 90, 0), (90, 100, 0)],
            id="a start long ago spreads the events",
        ),
        pytest.param(
            [[(-60, 90, 100)], [(0, 95, 110, {"started_at": moment_at(-120)})]],
            [(90, 100, 1), (95, 110, 2)],
            id="a start reported later is made up for",
        ),
        pytest.param(
            [[(-600, 0, 0), (-540, 0, 0), (-60, 80, 80)], [(0, 90, 90)]],
            [(0, 0, 0), *((10 * n, 10 * n, 1) for n in range(9)), (90, 90, 2)],
            id="a gap is not covered but counts",
        ),
        pytest.param(
            [[(-300, 0, 0)], [(0, 5, 10)]],
            [(n, 2 * n, 0) for n in range(1, 6)],
            id="events after a long silence are spread",
        ),
    ],
)
def test_counters_by_minute(
    sli: Sli, batches: list[list[Values]], by_minute: list[tuple[int, ...]]
) -> None:
    for batch in batches:
        add_batch(sli, batch)

    assert load_counters(sli, MINUTE - len(by_minute) + 1, MINUTE) == by_minute


def test_start_after_the_first_sample_is_as_early_as_that(sli: Sli) -> None:
    add(sample(sli, -60, 90, 100, started_at=moment_at(30)))

    assert total(sli, MINUTE - 1) == (90, 100, 0)


def test_same_sample_again_adds_nothing(sli: Sli) -> None:
    samples = [sample(sli, seconds, 1000 + seconds, 1000 + seconds) for seconds in (-120, -60, 0)]
    assert add(*samples) == 3

    assert add(*samples) == 0
    assert add(samples[1], samples[1]) == 0
    assert total(sli) == (120, 120, 2)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [
                ([(-120, 90, 100), (-60, 95, 110)], (5, 10, 1)),
                ([(0, 7, 8, {"boot": "2"})], (12, 18, 2)),
            ],
            id="another boot of a known source counts from zero",
        ),
        pytest.param(
            [
                ([(-120, 90, 100), (-60, 7, 8, {"boot": "2"})], (7, 8, 1)),
                ([(0, 91, 102)], (8, 10, 2)),
            ],
            id="a boot that comes back goes on from its own last sample",
        ),
        pytest.param(
            [([(0, 7, 8, {"boot": "2"})], (0, 0, 0)), ([(-60, 90, 100)], (7, 8, 1))],
            id="the first boot may be heard of last",
        ),
        pytest.param(
            [([(-90, 100, 100), (0, 150, 150)], (50, 50)), ([(-30, 40, 40)], (150, 150))],
            id="a late reset within a step adds what it hid",
        ),
        pytest.param(
            [
                ([(-60, 0, 0), (0, 5, 5)], (5, 5)),
                ([(0, 8, 9)], (8, 9)),
                ([(0, 6, 7)], (8, 9)),
            ],
            id="the larger of two samples of one moment counts",
        ),
    ],
)
def test_totals_after_each_batch(
    sli: Sli, steps: list[tuple[list[Values], tuple[int, ...]]]
) -> None:
    for batch, expected in steps:
        add_batch(sli, batch)
        assert total(sli)[: len(expected)] == expected


@pytest.mark.parametrize("lower", [(80, 200), (80, 90), (100, 105)])
def test_drop_of_good_or_total_or_bad_is_a_reset(sli: Sli, lower: tuple[int, int]) -> None:
    add(sample(sli, -60, 90, 100), sample(sli, 0, *lower))

    assert total(sli)[:2] == lower


def test_several_sources_add_up(sli: Sli) -> None:
    for source in "abc":
        add(sample(sli, -60, 0, 0, source=source), sample(sli, 0, 9, 10, source=source))

    assert total(sli) == (27, 30, 1)


def test_late_sample_is_put_where_it_belongs(sli: Sli) -> None:
    add(sample(sli, -600, 0, 0), sample(sli, 0, 1000, 1000))
    assert total(sli, MINUTE - 5) == (500, 500, 0)

    add(sample(sli, -60, 10, 10))

    assert total(sli, MINUTE - 5)[:2] == (5, 5)
    assert total(sli, MINUTE - 1)[:2] == (10, 10)
    assert total(sli) == (1000, 1000, 1)


def test_two_sources_cover_a_minute_once(sli: Sli) -> None:
    for source in "ab":
        add(sample(sli, -60, 0, 0, source=source), sample(sli, 0, 1, 1, source=source))

    assert total(sli)[2] == 1


def test_source_that_lives_has_a_row_a_minute_though_nothing_comes(sli: Sli) -> None:
    for seconds in range(-300, 1, 20):
        add(sample(sli, seconds, 5, 5))

    assert list(CounterMinute.objects.values_list("minute", flat=True).order_by("minute")) == [
        *range(MINUTE - 5, MINUTE + 1)
    ]
    assert total(sli) == (0, 0, 5)


def test_very_many_samples_in_a_minute_are_kept_as_few_and_count_the_same(sli: Sli) -> None:
    samples = [sample(sli, -59 + n / 10, n, n) for n in range(590)]
    for one in samples[:100]:
        add(one)
    assert len(Series.objects.get().storedsample_set.get().at) == THIN_ABOVE
    add(*samples[100:])

    assert total(sli)[:2] == (589, 589)
    assert len(Series.objects.get().storedsample_set.get().at) <= 2 * THIN_ABOVE
    add(*samples)
    assert total(sli)[:2] == (589, 589)


def test_growth_is_told_to_gates_with_its_span(sli: Sli) -> None:
    add(sample(sli, -30, 0, 0), sample(sli, -10, 9, 10))
    add(sample(sli, 0, 9.5, 11.25))

    rows = EventCount.objects.order_by("ended_at")
    assert list(rows.values_list("slo", "instance", "began_at", "ended_at", "good", "total")) == [
        ("core-availability", "a", moment_at(-30), moment_at(-10), 9, 10),
        ("core-availability", "a", moment_at(-10), moment_at(0), 0, 1),
    ]


def test_what_is_only_put_in_its_place_is_not_told_to_gates_again(sli: Sli) -> None:
    add(sample(sli, -30, 0, 0), sample(sli, 0, 9, 10))
    add(sample(sli, -10, 4, 5))
    add(sample(sli, -20, 0, 0, boot="0"), sample(sli, -40, 0, 0))

    assert sum(EventCount.objects.values_list("total", flat=True)) == 10


def test_fractions_of_events_add_up_exactly(sli: Sli) -> None:
    add(*(sample(sli, n - 100, n * 0.1, n * 0.1) for n in range(101)))

    assert total(sli)[:2] == (10, 10)


def test_counters_of_an_slo_that_was_removed_meanwhile_are_left_alone(sli: Sli) -> None:
    one = sample(sli, 0, 1, 1)
    sli.delete()

    assert add(one) == 0
    assert not Series.objects.exists()


def test_late_by_a_day_moves_all_that_came_after(sli: Sli) -> None:
    add(sample(sli, -86400, 0, 0), sample(sli, -60, 0, 0), sample(sli, 0, 6, 6))
    add(SentSample(sli.pk, "late", "", NOW - timedelta(hours=23), 0, 0))

    add(SentSample(sli.pk, "late", "", NOW - timedelta(hours=23) + timedelta(minutes=1), 4, 4))

    assert total(sli, MINUTE - 23 * 60 + 1)[:2] == (4, 4)
    assert total(sli)[:2] == (10, 10)
