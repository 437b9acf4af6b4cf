"""Turns of a rotation: at the hand-over, across years, and when clocks change."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.notify.targets.on_call_rotation import find_turn, hand_over

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Seoul", "Australia/Lord_Howe", "UTC"]


def make_moment(zone, *parts):
    return datetime(*parts, tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("zone", "monday", "before", "after"),
    [
        ("Europe/Berlin", (2026, 10, 19, 9), timedelta(0), timedelta(hours=1)),
        ("Europe/Berlin", (2026, 3, 23, 9), timedelta(0), timedelta(hours=-1)),
        ("America/New_York", (2026, 10, 26, 9), timedelta(0), timedelta(hours=1)),
        ("Asia/Seoul", (2026, 10, 19, 9), timedelta(0), timedelta(0)),
    ],
)
def test_hand_over_stays_at_nine_when_the_clocks_change(zone, monday, before, after):
    start = make_moment(zone, *monday)

    now = start + timedelta(days=1)
    found = find_turn(2, 7, start, ZoneInfo(zone), now)

    assert found.until.astimezone(ZoneInfo(zone)).hour == 9
    assert found.until - found.since == timedelta(days=7) + after + before


@pytest.mark.parametrize("zone", ZONES)
def test_turn_changes_at_the_hand_over_and_not_a_microsecond_before(zone):
    start = make_moment(zone, 2026, 1, 5, 9)
    tick = timedelta(microseconds=1)
    for number in range(1, 120):
        moment = hand_over(start, number, 7)

        assert find_turn(3, 7, start, ZoneInfo(zone), moment - tick).member == (number - 1) % 3
        assert find_turn(3, 7, start, ZoneInfo(zone), moment).member == number % 3


def test_before_the_beginning_the_first_is_on_duty():
    start = make_moment("Asia/Seoul", 2026, 12, 1, 9)

    found = find_turn(3, 7, start, ZoneInfo("Asia/Seoul"), start - timedelta(days=400))

    assert found.member == 0
    assert found.until == start + timedelta(days=7)


def test_nobody_is_in_it_and_nobody_is_on_duty():
    assert (
        find_turn(0, 7, datetime(2026, 1, 1, tzinfo=UTC), UTC, datetime(2026, 1, 2, tzinfo=UTC))
        is None
    )


def test_skipped_hour_hands_over_once_all_the_same():
    berlin = ZoneInfo("Europe/Berlin")
    start = make_moment("Europe/Berlin", 2026, 3, 22, 2, 30)

    found = find_turn(2, 7, start, berlin, make_moment("Europe/Berlin", 2026, 3, 29, 3, 30))

    assert found.member == 1
    assert found.since.astimezone(berlin).hour == 3


@given(
    st.sampled_from(ZONES),
    st.integers(1, 7),
    st.integers(1, 30),
    st.integers(0, 315_000_000).map(lambda seconds: timedelta(seconds=seconds)),
    st.timedeltas(timedelta(0), timedelta(days=4000)),
)
def test_any_moment_lies_in_exactly_the_turn_that_is_found(zone, members, days, start, later):
    beginning = datetime(2020, 1, 1, tzinfo=UTC) + start
    now = beginning + later

    found = find_turn(members, days, beginning, ZoneInfo(zone), now)

    assert found.since <= now < found.until
    following = find_turn(members, days, beginning, ZoneInfo(zone), found.until)
    assert following.since == found.until
    assert following.member == (found.member + 1) % members
