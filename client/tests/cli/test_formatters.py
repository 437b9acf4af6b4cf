"""Texts, times and numbers as people read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from switchgear.cli.formatters import (
    Cell,
    Clock,
    StyledText,
    cell,
    clean,
    duration_seconds,
    format_duration,
    format_percent,
    parse_moment,
    pluralize,
    stack,
)

SEOUL = timezone(timedelta(hours=9))
NOW = datetime(2026, 11, 22, 17, 30, tzinfo=UTC)
HERE = Clock(NOW, SEOUL)  # Monday, 02:30


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (125, "2 min 5 s"),
        (599, "9 min 59 s"),
        (3599, "1 h"),
        (4 * 3600 - 1, "4 h"),
        (3 * 3600 + 240, "3 h 4 min"),
        (47 * 3600, "47 h"),
        (2 * 86400, "2 d"),
        (3 * 86400 + 4 * 3600, "3 d 4 h"),
    ],
)
def test_span_is_rounded_and_has_two_units_at_most(seconds, expected):
    assert format_duration(seconds) == expected


def test_moment_of_today_has_no_day_and_is_in_the_readers_zone():
    assert HERE.short_time("2026-11-22T15:02:00Z") == "00:02"
    assert HERE.short_time("2026-11-22T14:59:00Z") == "Sun 23:59"
    assert HERE.short_time("2026-10-01T03:00:00Z") == "01 Oct 12:00"
    assert HERE.short_time("2025-10-01T03:00:00Z") == "01 Oct 2025"
    assert HERE.short_time(None) == "-"


def test_moment_before_and_after_now_says_which():
    assert HERE.time_left("2026-11-22T20:34:00Z") == "in 3 h 4 min"
    assert HERE.time_left("2026-11-22T17:29:00Z") == "1 min ago"
    assert HERE.ago("2026-11-22T17:31:00Z") == "0 s ago"
    assert HERE.exact_time("2026-11-22T17:30:00.123456Z") == "2026-11-23 02:30:00 +0900"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("18:00", "2026-11-23T09:00:00+00:00"),
        ("02:30", "2026-11-23T17:30:00+00:00"),
        ("2026-11-23T09:00", "2026-11-23T00:00:00+00:00"),
        ("2026-11-23T09:00:00Z", "2026-11-23T09:00:00+00:00"),
    ],
)
def test_time_is_read_by_the_readers_clock_unless_it_has_a_zone(written, meant):
    assert parse_moment(written, NOW, SEOUL).isoformat() == meant


@pytest.mark.parametrize("written", ["tomorrow", "25:00", "18", "", "2026-13-01T00:00"])
def test_what_is_no_time_is_refused(written):
    with pytest.raises(ValueError, match=r"write|hour"):
        parse_moment(written, NOW, SEOUL)


def test_durations_are_read_as_the_console_reads_them():
    assert [duration_seconds(text) for text in ("90s", "5m", "2h", "1d", "1w")] == [
        90, 300, 7_200, 86_400, 604_800,
    ]  # fmt: skip
    for text in ("5", "0m", "1.5h", "m", "-5m", "1h30m"):
        with pytest.raises(ValueError, match="whole number"):
            duration_seconds(text)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("재무 답변 오류", "재무 답변 오류"),
        ("two\nlines\there", "two lines here"),
        ("\x1b[2J\x1b]0;title\x07", "\ufffd[2J\ufffd]0;title\ufffd"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("\x9b31m", "\ufffd31m"),
        ("👩‍🔧 ok", "👩‍🔧 ok"),
    ],
)
def test_what_a_terminal_would_obey_is_taken_out(written, shown):
    assert clean(written) == shown
    assert str(cell(written, StyledText(written))) == shown * 2


def test_empty_pieces_have_no_line_of_their_own():
    assert str(stack("a", None, "", StyledText(""), cell(), "b")) == "a\nb"
    assert cell(StyledText("")) == Cell()


def test_numbers_read_as_words():
    assert (pluralize(1, "letter"), pluralize(2_000, "letter")) == ("1 letter", "2,000 letters")
    assert (format_percent(5), format_percent(12.5), format_percent(None)) == ("5 %", "12.5 %", "-")
