"""Weeks in all time zones follow each other without gaps, also when clocks change."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.report import weeks
from switches.report.weeks import Week

ZONES = st.sampled_from(sorted(available_timezones() - {"localtime"})).map(ZoneInfo)
EPOCH, YEAR_2060 = datetime(1970, 1, 12, tzinfo=UTC), 2_840_140_800
MOMENTS = st.integers(0, YEAR_2060).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
SEOUL, BERLIN, NEW_YORK = (
    ZoneInfo(name) for name in ("Asia/Seoul", "Europe/Berlin", "America/New_York")
)


@given(moment=MOMENTS, zone=ZONES)
def test_every_moment_is_in_exactly_the_week_that_has_begun_and_not_ended(moment, zone):
    week = weeks.week_of(moment, zone)

    assert week.starts_at(zone) <= moment < week.ends_at(zone)
    assert week.ends_at(zone) == week.later(1).starts_at(zone)


@given(moment=MOMENTS, zone=ZONES)
def test_a_week_begins_on_a_monday_of_its_zone_and_lasts_about_seven_days(moment, zone):
    week = weeks.week_of(moment, zone)
    begins = week.starts_at(zone)

    assert begins.astimezone(zone).isoweekday() == 1
    # A zone that crossed the date line once had a week of six days, or of eight.
    assert abs(week.ends_at(zone) - begins - timedelta(days=7)) <= timedelta(days=1)


@given(moment=MOMENTS, zone=ZONES)
def test_the_last_due_report_is_of_the_latest_week_whose_monday_at_nine_has_come(moment, zone):
    week = weeks.last_due(moment, zone)

    assert week.due_at(zone) <= moment < week.later(1).due_at(zone)
    assert week.ends_at(zone) <= moment


@given(moment=MOMENTS, zone=ZONES)
def test_what_a_week_is_called_names_it(moment, zone):
    week = weeks.week_of(moment, zone)

    assert weeks.parse(str(week)) == week
    assert week.later(1).later(-1) == week
    assert week < week.later(1)
    assert str(week) < str(week.later(1))


@given(moment=MOMENTS, zone=ZONES)
def test_the_days_of_a_week_fill_it(moment, zone):
    week = weeks.week_of(moment, zone)
    days = weeks.days_of(week.starts_at(zone), zone)

    assert [day for day, _, _ in days] == [week.monday + timedelta(days=n) for n in range(7)]
    assert days[0][1] == week.starts_at(zone)
    assert days[-1][2] == week.ends_at(zone)
    assert all(days[n][2] == days[n + 1][1] for n in range(6))


@pytest.mark.parametrize(
    ("zone", "week", "starts_at", "ends_at", "due_at"),
    [
        # Clocks go forward on Sunday: 167 hours, and nine o'clock comes an hour sooner.
        (BERLIN, "2026-W13", "2026-03-22T23:00", "2026-03-29T22:00", "2026-03-30T07:00"),
        # And back: 169 hours.
        (BERLIN, "2026-W43", "2026-10-18T22:00", "2026-10-25T23:00", "2026-10-26T08:00"),
        (NEW_YORK, "2026-W10", "2026-03-02T05:00", "2026-03-09T04:00", "2026-03-09T13:00"),
        (SEOUL, "2026-W47", "2026-11-15T15:00", "2026-11-22T15:00", "2026-11-23T00:00"),
        (ZoneInfo("UTC"), "2026-W53", "2026-12-28T00:00", "2027-01-04T00:00", "2027-01-04T09:00"),
        (ZoneInfo("UTC"), "2024-W52", "2024-12-23T00:00", "2024-12-30T00:00", "2024-12-30T09:00"),
        (ZoneInfo("UTC"), "2025-W01", "2024-12-30T00:00", "2025-01-06T00:00", "2025-01-06T09:00"),
    ],
)
def test_weeks_where_clocks_change_and_years_end(zone, week, starts_at, ends_at, due_at):
    found = weeks.parse(week)

    assert found.starts_at(zone) == datetime.fromisoformat(f"{starts_at}+00:00")
    assert found.ends_at(zone) == datetime.fromisoformat(f"{ends_at}+00:00")
    assert found.due_at(zone) == datetime.fromisoformat(f"{due_at}+00:00")


def test_weeks_follow_each_other_over_the_end_of_a_long_and_a_short_year():
    assert Week(2026, 53).later(1) == Week(2027, 1)
    assert Week(2025, 1).later(-1) == Week(2024, 52)
    assert Week(2027, 1).later(-1) == Week(2026, 53)
    assert Week(2026, 53).sunday == date(2027, 1, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "such as 2026-W47"),
        ("2026-47", "such as 2026-W47"),
        ("2026-w47", "such as 2026-W47"),
        ("2026-W7", "such as 2026-W47"),
        ("٢٠٢٦-W47", "such as 2026-W47"),
        ("2026-W47-1", "such as 2026-W47"),
        ("2026-W00", "2026 has no week 0"),
        ("2025-W53", "2025 has no week 53"),
        ("2026-W99", "2026 has no week 99"),
        ("0000-W01", "from 1970"),
        ("9999-W01", "to 9000"),
    ],
)
def test_a_text_that_is_no_week_says_what_to_write(text, message):
    with pytest.raises(ValueError, match=message):
        weeks.parse(text)
