"""Minutes as figures to draw: bands, the spark, sums."""

from datetime import UTC, datetime, timedelta

import pytest

from breakers.counts import COUNTERS, BreakerCounts
from breakers.states.history import (
    Band,
    MinuteRow,
    build_bands,
    build_spark,
    coarsen_bands,
    sum_counts,
)

FIRST = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)


def minute(place: int, worst: int = 1, **counters: int) -> MinuteRow:
    counts = dict.fromkeys(COUNTERS, 0) | counters
    return MinuteRow(FIRST + timedelta(minutes=place), worst, **counts)


def test_minutes_alike_are_one_band_and_gaps_are_unknown():
    rows = [minute(0), minute(1), minute(2, worst=3), minute(5, worst=2)]

    bands = build_bands(rows, FIRST, 7)

    assert bands == [
        Band(0, 2, "closed"),
        Band(2, 1, "open"),
        Band(3, 2, "unknown"),
        Band(5, 1, "half_open"),
        Band(6, 1, "unknown"),
    ]


def test_minutes_outside_are_left_out():
    assert build_bands([minute(-1, worst=3), minute(3, worst=3)], FIRST, 3) == [
        Band(0, 3, "unknown")
    ]


@pytest.mark.parametrize(
    ("counted", "present", "shown"),
    [
        (1, "open", "open"),
        (3, "closed", "open"),
        (0, "closed", "closed"),
        (0, "unknown", "unknown"),
    ],
)
def test_last_minute_is_at_least_as_bad_as_the_present_state(counted, present, shown):
    bands = build_bands([minute(0), minute(1, worst=counted)], FIRST, 2, present=present)

    assert bands[-1].end == 2
    assert bands[-1].state == shown


def test_minute_without_calls_breaks_the_line_of_the_spark():
    rows = [minute(0, success=9, failure=1), minute(1), minute(2, success=1, failure=1)]

    spark = build_spark(rows, FIRST, 60)

    assert spark.pieces == [[(0, 0.1)], [(2, 0.5)]]
    assert spark.worst_share == 0.5


def test_only_minutes_in_which_it_was_not_closed_are_troubled():
    rows = [minute(0), minute(1, worst=3), minute(2, worst=2)]

    assert build_spark(rows, FIRST, 60).troubled == [Band(1, 1, "open"), Band(2, 1, "half_open")]


def test_timeouts_are_failures_and_what_was_turned_away_is_no_call():
    total = sum_counts([minute(0, success=6, failure=1, timeout=1), minute(1, rejected=8)])

    assert total.calls == 8
    assert total.failure_share == 0.25
    assert total.share("rejected") == 0.5


def test_amplification_is_tries_for_each_call():
    assert BreakerCounts(success=100, failure=50, retry=50).amplification == 1.5


def test_nothing_counted_has_no_shares():
    nothing = BreakerCounts()

    assert nothing.failure_share is None
    assert nothing.amplification is None
    assert nothing.share("success") is None


def test_coarser_strip_is_as_bad_as_the_worst_minute_of_each_piece():
    rows = [minute(place) for place in range(10)] + [minute(12, worst=3), minute(13, worst=2)]

    bands = coarsen_bands(build_bands(rows, FIRST, 15), 5)

    assert bands == [Band(0, 10, "closed"), Band(10, 5, "open")]


def test_day_that_flaps_each_minute_stays_a_few_bands():
    rows = [minute(place, worst=1 + place % 3) for place in range(1440)]

    assert len(coarsen_bands(build_bands(rows, FIRST, 1440), 5)) == 1
