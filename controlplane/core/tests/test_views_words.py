"""The words for time left and time gone, which the page's clock repeats."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.core.templatetags.screen import (
    age,
    at_minute,
    local_and_utc,
    moment,
    on_axis,
    time_left,
)

NOW = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (timedelta(days=6, hours=23, minutes=59), "6 d 23 h"),
        (timedelta(hours=48), "2 d 0 h"),
        (timedelta(hours=47, minutes=59, seconds=59), "47:59:59"),
        (timedelta(hours=1), "1:00:00"),
        (timedelta(minutes=59, seconds=5), "59:05"),
        (timedelta(milliseconds=1), "0:01"),
        (timedelta(0), "0:00 over"),
        (timedelta(seconds=-5.9), "0:05 over"),
        (timedelta(hours=-3), "3:00:00 over"),
    ],
)
def test_time_left_never_claims_a_second_that_is_gone(left, text):
    assert time_left(left) == text


@pytest.mark.parametrize(
    ("elapsed", "text"),
    [
        (timedelta(seconds=-3), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=59, seconds=59), "59 min"),
        (timedelta(hours=23, minutes=59), "23 h"),
        (timedelta(days=2, hours=3), "2 d"),
    ],
)
def test_age_is_one_number(elapsed, text):
    assert age(elapsed) == text


def test_moment_is_told_in_the_persons_zone_and_in_utc():
    with timezone.override("Asia/Seoul"):
        assert local_and_utc(NOW) == "2026-11-21 11:11:00 KST · 2026-11-21 02:11:00 UTC"
        assert ">21 Nov 2024 11:11<" in moment(NOW.replace(year=2024))


def test_utc_is_told_once():
    with timezone.override("UTC"):
        assert local_and_utc(NOW) == "2026-11-21 02:11:00 UTC"


def test_no_moment_is_no_text():
    assert moment(None) == ""


def test_minute_says_its_day_unless_that_is_today_and_always_in_utc():
    with timezone.override("Asia/Seoul"):
        now = timezone.now()
        assert f">{timezone.localtime(now):%H:%M}<" in at_minute(now)
        assert f'data-utc="{now.astimezone(UTC):%-d %b %H:%M} UTC"' in at_minute(now)
        assert ">21 Nov 11:11<" in at_minute(NOW.replace(year=2024))


def test_moment_on_an_axis_is_as_short_in_utc():
    with timezone.override("Asia/Seoul"):
        assert 'data-utc="02:11 UTC">11:11<' in on_axis(NOW)
