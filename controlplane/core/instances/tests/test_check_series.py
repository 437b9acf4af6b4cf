"""Arithmetic of check series: a minute without reported checks is a gap, not zero."""

from datetime import UTC, datetime

import pytest

from controlplane.core.instances.check_series import (
    MAX_BUCKETS,
    CheckBucket,
    build_series,
    choose_step,
    coarsen_buckets,
    counted_until,
)

HOUR, DAY = 3600, 86_400


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(HOUR, 60), (6 * HOUR, 120), (DAY, 600), (7 * DAY, HOUR), (90 * DAY, 12 * HOUR)],
)
def test_step_is_the_shortest_that_fits_the_range(seconds, step):
    assert choose_step(seconds) == step
    assert seconds / step <= MAX_BUCKETS


def test_bucket_without_reports_is_unknown_and_not_zero():
    series = build_series({60: (0, 0), 180: (7, 3)}, 0, 240, 60)

    assert [bucket.total for bucket in series.buckets] == [None, 0, None, 10]
    assert (series.allowed, series.blocked, series.is_empty) == (7, 3, False)
    assert build_series({}, 0, 240, 60).is_empty


def test_first_bucket_begins_on_a_whole_step_and_the_last_ends_with_the_series():
    series = build_series({0: (5, 0), 600: (6, 0)}, 130, 720, 600)

    assert [(one.start, one.seconds) for one in series.buckets] == [(0, 600), (600, 120)]
    assert [one.per_minute(one.allowed) for one in series.buckets] == [0.5, 3.0]


def test_table_joins_buckets_and_keeps_gaps():
    series = build_series({0: (1, 2), 60: (3, 4)}, 0, 300, 60)

    assert coarsen_buckets(series, 3) == [
        CheckBucket(240, 60),
        CheckBucket(120, 120),
        CheckBucket(0, 120, 4, 6),
    ]


@pytest.mark.parametrize(("minute", "second"), [(0, 45), (0, 59), (1, 0), (1, 44)])
def test_series_ends_with_the_last_minute_that_is_written(minute, second):
    now = datetime(2026, 11, 26, 12, minute, second, tzinfo=UTC)

    assert datetime.fromtimestamp(counted_until(now), UTC) == datetime(2026, 11, 26, 12, tzinfo=UTC)
