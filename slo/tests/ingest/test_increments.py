"""Splitting an increment between two samples into minutes."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from slo.arithmetic import increments
from slo.arithmetic.increments import (
    MINUTE,
    Increment,
    Sample,
    covered_minutes,
    increment_between,
    minute_of,
    split_by_minute,
)

SECOND = 1_000_000
times = st.integers(0, 10_000 * MINUTE)


def second_at(minutes: float) -> int:
    return round(minutes * MINUTE)


def split(increment: Increment) -> dict[int, tuple[float, float]]:
    return {minute: (good, total) for minute, good, total in split_by_minute(increment)}


def test_short_step_belongs_to_the_minute_of_its_last_sample() -> None:
    assert split(Increment(second_at(10.5), second_at(12.5), 7, 9)) == {13: (7, 9)}


def test_sample_just_at_the_end_of_a_minute_belongs_to_it() -> None:
    assert [
        minute_of(second_at(10)),
        minute_of(second_at(10) + 1),
        minute_of(second_at(10) - 1),
    ] == [10, 11, 10]


def test_long_step_is_spread_evenly_over_its_minutes() -> None:
    pieces = split(Increment(second_at(10), second_at(15), 450, 500))

    assert pieces == dict.fromkeys(range(11, 16), (90, 100))


def test_few_events_of_a_long_step_stay_whole_and_add_up() -> None:
    pieces = split(Increment(second_at(10), second_at(17), 3, 5))

    assert sum(total for _, total in pieces.values()) == 5
    assert sum(good for good, _ in pieces.values()) == 3
    assert all(good == int(good) and 0 <= good <= total for good, total in pieces.values())


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(times, times, st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from([1, 1024]))
@example(0, 10 * MINUTE, 0, 1, 1)
def test_what_is_spread_adds_up_to_the_step(
    one: int, other: int, good: int, bad: int, parts: int
) -> None:
    began, ended = sorted((one, other))
    increment = Increment(began, ended, good / parts, (good + bad) / parts)

    pieces = split(increment)

    assert sum(total for _, total in pieces.values()) == increment.total
    assert sum(good for good, _ in pieces.values()) == increment.good
    assert all(0 <= good <= total for good, total in pieces.values())
    assert list(pieces) == sorted(pieces)
    assert list(pieces)[-1] == minute_of(ended)
    assert began < min(pieces) * MINUTE or began == ended


def test_what_is_old_is_spread_by_the_hour_and_not_lost() -> None:
    year = 365 * 24 * 60
    pieces = split(Increment(0, second_at(year), year, year))

    assert len(pieces) == increments.MAX_MINUTES + (year - increments.MAX_MINUTES) // 60
    assert sum(total for _, total in pieces.values()) == year
    assert max(total for _, total in pieces.values()) == 60
    assert pieces[year] == (1, 1)


def test_what_is_too_old_for_any_period_is_put_together_before_it() -> None:
    years = 3 * 365 * 24 * 60
    pieces = split(Increment(0, second_at(years), years, years))

    first = min(pieces)
    assert first == years - increments.MAX_HOUR_MINUTES
    assert pieces.pop(first) == (first, first)
    assert max(total for _, total in pieces.values()) == 60


def test_counter_that_went_down_began_again_at_zero() -> None:
    before = Sample(0, 80, 100)

    assert increment_between(before, Sample(1, 85, 110)) == Increment(0, 1, 5, 10)
    assert increment_between(before, Sample(1, 5, 110)) == Increment(0, 1, 5, 110)
    assert increment_between(before, Sample(1, 3, 4)) == Increment(0, 1, 3, 4)
    assert increment_between(before, Sample(1, 95, 105)) == Increment(
        0, 1, 95, 105
    )  # 20 bad events, now 10.


@pytest.mark.parametrize(
    ("began", "ended", "minutes"),
    [
        (10, 11, [11]),
        (10.5, 11.5, [11, 12]),
        (10, 12, [11, 12]),
        (10.25, 12.25, [11, 12, 13]),
        (10.25, 12.26, []),
        (10, 10, []),
        (10.2, 10.4, [11]),
    ],
)
def test_span_of_at_most_two_minutes_covers_what_it_overlaps(
    began: float, ended: float, minutes: list[int]
) -> None:
    assert list(covered_minutes(second_at(began), second_at(ended))) == minutes


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.floats(0, 2**53), st.floats(0, 2**53), st.floats(0, 2**40))
def test_counts_as_they_are_kept_stay_in_order_and_almost_the_same(
    one: float, other: float, small: float
) -> None:
    assert (increments.round_count(one) <= increments.round_count(other)) or one > other
    assert abs(increments.round_count(one) - one) <= 1 / 2048
    total = increments.round_count(small) + increments.round_count(other % 2**40)
    assert total - increments.round_count(small) == increments.round_count(other % 2**40)
