"""The console's time, from what its answers say and from our own clocks."""

import os
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.clock import (
    MAX_ANSWERS,
    MIN_AGREEING,
    VERSION_SECONDS,
    ConsoleClock,
    OffsetEstimator,
    parse_date,
    parse_time,
)
from switchgear.testing import FakeClock

NOON = 1_795_262_400.0  # 2026-11-21T12:00:00Z


class Machine(FakeClock):
    """A console's clock that can be corrected."""

    ahead = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead


@pytest.fixture
def far_east() -> Iterator[None]:
    """This process's local zone is not UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "KST-9"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "Sat, 21 Nov 2026 12:00:00 GMT",
        "Sat, 21 Nov 2026 21:00:00 +0900",
        "Sat, 21 Nov 2026 12:00:00 -0000",
        "Saturday, 21-Nov-26 12:00:00 GMT",
        "Sat Nov 21 12:00:00 2026",
    ],
)
@pytest.mark.usefixtures("far_east")
def test_date_is_in_utc_unless_it_says_otherwise(text: str) -> None:
    assert parse_date(text) == NOON


@pytest.mark.parametrize(
    "text", [None, "", "soon", "Sat, 99 Nov 2026 12:00:00 GMT", "Sat, 21 Nov 99999 12:00:00 GMT"]
)
def test_what_is_no_date_is_left_aside(text: str | None) -> None:
    clock = ConsoleClock(FakeClock(NOON))

    clock.update({} if text is None else {"date": text}, 0.0, 0.0)

    assert parse_date(text) is None
    assert clock.now() == NOON


def test_local_clock_counts_as_it_is_until_the_console_is_heard() -> None:
    machine = Machine(NOON - 86_400)
    clock = ConsoleClock(machine)

    machine.ahead = 86_400.0

    assert clock.now() == NOON


def test_local_clock_counts_no_more_once_the_console_was_heard() -> None:
    machine = Machine(NOON)
    clock = ConsoleClock(machine)
    clock.update({"date": "Sat, 21 Nov 2026 12:00:00 GMT"}, 0.0, 0.0)

    machine.ahead = 86_400.0
    machine.advance(10)

    assert clock.now() == pytest.approx(NOON + 10, abs=1)


TRUE, WRONG = 0.0, 7200.0
"""Offsets of a console that is right, and of one two hours ahead."""


def estimated(*offsets: float) -> OffsetEstimator:
    estimator = OffsetEstimator()
    for offset in offsets:
        estimator.add(offset)
    return estimator


@pytest.mark.parametrize(
    ("offsets", "trusted"),
    [
        ([], None),
        ([TRUE] * (MIN_AGREEING - 1), None),
        ([TRUE] * MIN_AGREEING, TRUE),
        ([WRONG], None),
        ([WRONG, TRUE, TRUE], None),
        ([WRONG, TRUE, TRUE, TRUE], TRUE),
        ([TRUE, TRUE, TRUE, WRONG], TRUE),
        ([TRUE, WRONG] * 4, None),
        ([TRUE] * 9 + [WRONG] * 3, TRUE),
        ([TRUE] * 9 + [WRONG] * 5, None),
        ([TRUE] * 9 + [WRONG] * 8, TRUE),
        ([TRUE] * 9 + [WRONG] * 9, WRONG),
        ([TRUE] * 9 + ([WRONG] * 8 + [TRUE]) * 9, TRUE),
        ([WRONG] * 3, WRONG),
        ([TRUE] + [WRONG] * 3, None),
        ([WRONG, TRUE] + [WRONG] * 4, None),
        ([TRUE] + [WRONG] * 9, WRONG),
        ([WRONG] * 3 + [TRUE] * 3, None),
        ([WRONG] * 3 + [TRUE] * 6, TRUE),
        ([WRONG] * 9 + [TRUE] * 6, TRUE),
        ([-WRONG] * 3 + [TRUE] * 6, -WRONG),
        ([TRUE, 40.0, 80.0, 120.0], 40.0),
        ([TRUE, 30.0, 60.0], 30.0),
    ],
)
def test_offset_is_trusted_once_recent_answers_agree(
    offsets: list[float], trusted: float | None
) -> None:
    assert estimated(*offsets).trusted == trusted


@given(st.lists(st.sampled_from([TRUE, WRONG, -WRONG, 1e9]), max_size=60))
def test_once_right_no_answers_but_a_whole_window_of_wrong_ones_move_it_ahead(
    answers: list[float],
) -> None:
    estimator = estimated(*[TRUE] * MIN_AGREEING)
    wrong_in_a_row = 0
    for answer in answers:
        estimator.add(answer)
        wrong_in_a_row = wrong_in_a_row + 1 if answer > TRUE else 0
        if wrong_in_a_row == MAX_ANSWERS:
            return
        assert estimator.trusted is None or estimator.trusted <= TRUE


@given(st.lists(st.floats(-1e9, 1e9), max_size=2), st.lists(st.booleans(), min_size=9, max_size=60))
def test_fewer_than_half_wrong_answers_leave_the_median_right(
    first: list[float], are_right: list[bool]
) -> None:
    """An oracle of its own: the majority of each window is counted, not sorted."""
    estimator, told = OffsetEstimator(), []
    for offset in [*first, *(TRUE if each else WRONG for each in are_right)]:
        estimator.add(offset)
        told.append(offset)
        window = told[-MAX_ANSWERS:]
        if 2 * window.count(TRUE) > len(window):
            assert estimator.median == TRUE


def update_by_date(clock: ConsoleClock, answers: int, ahead: float = 0.0) -> None:
    """Hear answers, one a second, of a console whose clock is `ahead` of `NOON`'s."""
    for _ in range(answers):
        clock.time.advance(1)  # type: ignore[attr-defined]
        date = NOON + clock.time.monotonic() + ahead
        clock.update({"date": formatdate(date, usegmt=True)}, 0.0, 0.0)


def test_release_time_is_unknown_without_a_console_whatever_the_local_clock_shows() -> None:
    assert ConsoleClock(FakeClock(NOON)).release_now() is None


def test_local_clock_that_is_trusted_is_the_release_time() -> None:
    clock = ConsoleClock(time := FakeClock(NOON))
    clock.trust_local()
    time.advance(5)

    assert clock.release_now() == NOON + 5


def test_release_time_goes_on_by_the_monotonic_clock_while_the_console_is_away() -> None:
    machine = Machine(NOON)
    clock = ConsoleClock(machine)
    update_by_date(clock, 3)

    machine.ahead = 86_400.0
    machine.advance(7200)

    assert clock.release_now() == pytest.approx(NOON + 7203, abs=1)


def test_machine_that_slept_is_late_until_nine_answers_agree() -> None:
    """The monotonic clock stood still meanwhile, so the console seems to have jumped ahead."""
    clock = ConsoleClock(FakeClock(NOON))
    update_by_date(clock, 9)
    slept = 8 * 3600.0

    update_by_date(clock, 8, slept)
    late = clock.release_now()
    update_by_date(clock, 1, slept)

    assert late == pytest.approx(NOON + 17, abs=1)
    assert clock.release_now() == pytest.approx(NOON + slept + 18, abs=1)


def test_console_set_back_is_followed_by_the_majority_at_once() -> None:
    clock = ConsoleClock(FakeClock(NOON))
    update_by_date(clock, 9)

    update_by_date(clock, 6, -3600.0)

    assert clock.release_now() == pytest.approx(NOON - 3600 + 15, abs=1)


def test_one_wrong_date_moves_neither_reading() -> None:
    clock = ConsoleClock(FakeClock(NOON))
    update_by_date(clock, 3)

    update_by_date(clock, 1, 7200.0)

    assert clock.now() == pytest.approx(NOON + 4, abs=1)
    assert clock.release_now() == pytest.approx(NOON + 4, abs=1)


@pytest.mark.parametrize(
    ("ahead_seconds", "seconds"),
    [
        pytest.param(7200.0, 9 + 5 + VERSION_SECONDS, id="all dates are ahead"),
        pytest.param(0.0, 9, id="the dates are right"),
    ],
)
def test_new_version_bounds_dates_that_are_ahead(ahead_seconds: float, seconds: float) -> None:
    clock = ConsoleClock(FakeClock(NOON))
    update_by_date(clock, 9, ahead_seconds)

    clock.limit_by_version(NOON + 9, since_seconds=5.0)

    assert clock.release_now() == pytest.approx(NOON + seconds, abs=1)


def update_by_time(clock: ConsoleClock, answers: int, time: str | None = None) -> None:
    """Send answers, one a second, through a proxy whose clock is ten minutes ahead.

    `Switchgear-Time` is right unless `time` is given.
    """
    for _ in range(answers):
        clock.time.advance(1)  # type: ignore[attr-defined]
        now = NOON + clock.time.monotonic()
        date = formatdate(now + 600, usegmt=True)
        clock.update({"date": date, "switchgear-time": time or f"{now:.3f}"}, 0.0, 0.0)


def test_time_header_counts_and_a_wrong_date_beside_it_does_not() -> None:
    clock = ConsoleClock(FakeClock(NOON))

    update_by_time(clock, 3)

    assert clock.now() == pytest.approx(NOON + 3)
    assert clock.release_now() == pytest.approx(NOON + 3)


def test_first_time_header_ends_the_trust_in_dates() -> None:
    clock = ConsoleClock(FakeClock(NOON))
    update_by_date(clock, 9, 600.0)

    update_by_time(clock, 1)
    once = clock.release_now()
    update_by_time(clock, 2)
    update_by_date(clock, 9, 600.0)

    assert once is None
    assert clock.release_now() == pytest.approx(NOON + 21)


@pytest.mark.parametrize("time", ["unknown", "-1", "1e9", "soon", "9" * 40, "nan"])
def test_answer_that_does_not_know_the_time_says_nothing_by_its_date(time: str) -> None:
    clock = ConsoleClock(FakeClock(NOON))

    update_by_time(clock, 9, time)

    assert parse_time(time) is None
    assert clock.release_now() is None


@pytest.mark.parametrize("ahead", [600.0, 30.0, 0.0, -600.0])
@pytest.mark.parametrize("answers", [update_by_date, update_by_time], ids=["dates", "times"])
def test_engagement_lasts_as_long_by_the_monotonic_clock_as_was_left_when_it_was_published(
    answers: Callable[..., None], ahead: float
) -> None:
    """Shift the time of all answers by `ahead`, but not the publication times."""
    clock = ConsoleClock(time := FakeClock(NOON))
    if answers is update_by_date:
        update_by_date(clock, 9, ahead)
    else:
        for _ in range(9):
            time.advance(1)
            clock.update({"switchgear-time": f"{NOON + time.monotonic() + ahead:.3f}"}, 0.0, 0.0)
    clock.limit_by_version(NOON + 9, since_seconds=0.0)
    ends_at = NOON + 9 + 95

    time.advance(95 - VERSION_SECONDS - 0.5)
    early = clock.release_now()

    assert early is not None
    assert early < ends_at


def test_readings_are_the_same_after_a_fork() -> None:
    clock = ConsoleClock(FakeClock(NOON))
    update_by_date(clock, 3)
    before = clock.now(), clock.release_now()

    clock.after_fork()

    assert (clock.now(), clock.release_now()) == before
