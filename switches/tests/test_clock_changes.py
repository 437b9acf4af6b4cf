"""Expiries in people's zones around clock changes."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.actors import system_actor
from switches import services
from switches.forms import ExtendForm, LocalTimeField
from switches.tests import messages

KIM = system_actor("test")
REASON = "refund job is still running"
ZONES = ("America/New_York", "Europe/Berlin", "Asia/Seoul", "Australia/Lord_Howe")


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# Local times are worked out by hand; Lord Howe's clocks change by half an hour.
@pytest.mark.parametrize(
    ("zone", "chosen", "moment"),
    [
        ("America/New_York", "2027-03-14T01:30", "2027-03-14T06:30"),
        ("America/New_York", "2027-03-14T03:30", "2027-03-14T07:30"),
        ("America/New_York", "2026-11-01T00:30", "2026-11-01T04:30"),
        ("America/New_York", "2026-11-01T02:30", "2026-11-01T07:30"),
        ("Europe/Berlin", "2027-03-28T01:30", "2027-03-28T00:30"),
        ("Europe/Berlin", "2027-03-28T03:30", "2027-03-28T01:30"),
        ("Europe/Berlin", "2026-10-25T01:30", "2026-10-24T23:30"),
        ("Europe/Berlin", "2026-10-25T03:30", "2026-10-25T02:30"),
        ("Asia/Seoul", "2027-03-14T02:30", "2027-03-13T17:30"),
        ("Australia/Lord_Howe", "2027-04-04T01:15", "2027-04-03T14:15"),
        ("Australia/Lord_Howe", "2027-04-04T02:15", "2027-04-03T15:45"),
        ("Australia/Lord_Howe", "2026-10-04T02:45", "2026-10-03T15:45"),
    ],
)
def test_wall_time_near_a_clock_change_is_the_right_moment(zone, chosen, moment):
    with timezone.override(zone):
        assert LocalTimeField().clean(chosen) == utc(moment)


@pytest.mark.parametrize(
    ("zone", "chosen"),
    [
        ("America/New_York", "2027-03-14T02:30"),  # skipped
        ("America/New_York", "2026-11-01T01:30"),  # twice
        ("Europe/Berlin", "2027-03-28T02:30"),
        ("Europe/Berlin", "2026-10-25T02:30"),
        ("Australia/Lord_Howe", "2026-10-04T02:15"),
        ("Australia/Lord_Howe", "2027-04-04T01:45"),
    ],
)
def test_wall_time_that_is_skipped_or_comes_twice_is_refused(zone, chosen):
    with timezone.override(zone), pytest.raises(ValidationError, match="not a valid time"):
        LocalTimeField().clean(chosen)


@given(
    st.sampled_from(ZONES),
    st.integers(0, 2 * 365 * 24 * 60),
)
def test_a_wall_time_is_taken_if_the_clocks_show_it_exactly_once(zone, minutes):
    wall = (utc("2026-01-01T00:00") + timedelta(minutes=minutes)).replace(tzinfo=None)
    quarters = (timedelta(minutes=15 * n) for n in range(-4 * 14, 4 * 14 + 1))
    showing = {
        moment
        for quarter in quarters
        if (moment := wall.replace(tzinfo=UTC) - quarter)
        .astimezone(ZoneInfo(zone))
        .replace(tzinfo=None)
        == wall
    }

    with timezone.override(zone):
        try:
            taken = LocalTimeField().clean(f"{wall:%Y-%m-%dT%H:%M}")
        except ValidationError:
            taken = None

    assert taken == (showing.pop() if len(showing) == 1 else None)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("zone", "now", "chosen", "ends"),
    [
        ("America/New_York", "2027-03-10T12:00", "2027-03-14T12:00", "2027-03-14T16:00"),
        ("America/New_York", "2026-10-29T12:00", "2026-11-01T12:00", "2026-11-01T17:00"),
        ("Europe/Berlin", "2027-03-25T12:00", "2027-03-28T12:00", "2027-03-28T10:00"),
        ("Asia/Seoul", "2027-03-10T12:00", "2027-03-14T12:00", "2027-03-14T03:00"),
        ("Australia/Lord_Howe", "2027-04-01T12:00", "2027-04-04T12:00", "2027-04-04T01:30"),
    ],
)
def test_reminders_and_expiry_count_real_hours_over_a_clock_change(
    settings, zone, now, chosen, ends
):
    messages.configure(settings)
    now, ends = utc(now) + timedelta(microseconds=400_000), utc(ends)
    services.engage(scope="segment", key="a", reason=REASON, expires_in="1h", actor=KIM, now=now)
    with timezone.override(zone):
        form = ExtendForm({"how_long": "at", "expires_at": chosen, "reason": REASON})
        assert form.is_valid()
        arguments = form.service_arguments(now, None)
    extended = services.extend(scope="segment", key="a", actor=KIM, now=now, **arguments).episode

    assert timedelta() <= extended.expires_at - ends < timedelta(seconds=1)
    expires_at, hour, second = extended.expires_at, timedelta(hours=1), timedelta(seconds=1)
    turns = (-24 * hour - second, -24 * hour, -hour - second, -hour)
    assert [services.remind_due(expires_at + turn) for turn in turns] == [0, 1, 0, 1]
    assert [services.expire_due(expires_at - second), services.expire_due(expires_at)] == [0, 1]
