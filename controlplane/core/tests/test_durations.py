"""Durations: accepted and refused texts, and formatting."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("90s", 90),
        ("30m", 1800),
        ("24h", 86_400),
        ("7d", 604_800),
        ("2w", 1_209_600),
        ("007d", 604_800),
        ("  24h\n", 86_400),
        ("3650d", 315_360_000),
        ("315360000s", 315_360_000),
    ],
)
def test_parse_whole_number_and_unit_gives_duration(text: str, seconds: int) -> None:
    assert durations.parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "24",
        "h",
        "-1h",
        "+1h",
        "1.5h",
        "1,5h",
        "1e3s",
        "24 h",
        "2 4h",
        "24H",
        "1d12h",
        "24hours",
        "1y",
        "1M",
        "P1D",
        "24h24h",
        "24h\x00",
        "permanent",
        "٢٤h",
        "２４h",
        "24ｈ",
        "²h",
        "0x10s",
        "1_000s",
        "nan",
        "infs",
    ],
)
def test_parse_anything_else_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match=r"whole number and a unit .* 24h"):
        durations.parse(text)


@pytest.mark.parametrize("text", ["0s", "00d", "0000000000000000000000w"])
def test_parse_zero_is_refused_as_zero(text: str) -> None:
    with pytest.raises(ValueError, match="longer than zero"):
        durations.parse(text)


@pytest.mark.parametrize(
    "text", ["3651d", "522w", "315360001s", "999999999999w", "9" * 5000 + "s", "1" * 13 + "s"]
)
def test_parse_absurd_size_is_refused_without_overflow(text: str) -> None:
    with pytest.raises(ValueError, match="limited to 3650 days"):
        durations.parse(text)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=1), "1s"),
        (timedelta(seconds=90), "90s"),
        (timedelta(minutes=90), "90m"),
        (timedelta(hours=24), "24h"),
        (timedelta(hours=36), "36h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=7), "7d"),
        (timedelta(days=2, hours=1), "49h"),
    ],
)
def test_canonical_is_the_largest_whole_unit(duration: timedelta, text: str) -> None:
    assert durations.format_canonical(duration) == text


@pytest.mark.parametrize("seconds", [0, -1, 0.5, 1.000001])
def test_canonical_of_what_cannot_be_written_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="positive whole number of seconds"):
        durations.format_canonical(timedelta(seconds=seconds))


@given(st.integers(1, int(durations.MAX_DURATION.total_seconds())))
def test_canonical_parses_back(seconds: int) -> None:
    duration = timedelta(seconds=seconds)

    assert durations.parse(durations.format_canonical(duration)) == duration


@given(st.text())
def test_parse_returns_a_bounded_duration_or_value_error(text: str) -> None:
    try:
        duration = durations.parse(text)
    except ValueError:
        return
    assert timedelta(0) < duration <= durations.MAX_DURATION


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0 s"),
        (timedelta(milliseconds=999), "0 s"),
        (timedelta(seconds=45), "45 s"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(seconds=90), "1 min 30 s"),
        (timedelta(minutes=59, seconds=59, milliseconds=999), "59 min 59 s"),
        (timedelta(hours=1), "1 h"),
        (timedelta(hours=1, seconds=59), "1 h"),
        (timedelta(hours=24), "24 h"),
        (timedelta(hours=47, minutes=59), "47 h 59 min"),
        (timedelta(hours=48), "2 d"),
        (timedelta(days=3, hours=4, minutes=59), "3 d 4 h"),
        (timedelta(days=30), "30 d"),
        (timedelta(minutes=-5), "-5 min"),
        (timedelta(milliseconds=-1), "0 s"),
    ],
)
def test_readable_says_at_most_two_units(duration: timedelta, text: str) -> None:
    assert durations.format_readable(duration) == text


@given(st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_readable_never_says_more_than_there_is(duration: timedelta) -> None:
    units = {"d": 86_400, "h": 3600, "min": 60, "s": 1}
    parts = durations.format_readable(duration).split()

    total = sum(int(n) * units[unit] for n, unit in zip(parts[::2], parts[1::2], strict=True))
    smallest = units[parts[-1]] if len(parts) == 4 else {"d": 3600, "h": 60}.get(parts[-1], 1)
    assert 0 <= duration.total_seconds() - total < smallest
