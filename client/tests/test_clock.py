"""The console's time, from what its answers say and from our own clocks."""

import os
import time
from collections.abc import Iterator

import pytest

from switchgear.clock import ConsoleClock, read_date
from switchgear.testing import FakeClock

NOON = 1_795_262_400.0  # 2026-11-21T12:00:00Z


class Machine(FakeClock):
    """One whose clock somebody can put right."""

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
    assert read_date(text) == NOON


@pytest.mark.parametrize(
    "text", [None, "", "soon", "Sat, 99 Nov 2026 12:00:00 GMT", "Sat, 21 Nov 99999 12:00:00 GMT"]
)
def test_what_is_no_date_is_left_aside(text: str | None) -> None:
    clock = ConsoleClock(FakeClock(NOON))

    clock.heard(text, 0.0, 0.0)

    assert read_date(text) is None
    assert clock.now() == NOON


def test_local_clock_counts_as_it_is_until_the_console_is_heard() -> None:
    machine = Machine(NOON - 86_400)
    clock = ConsoleClock(machine)

    machine.ahead = 86_400.0

    assert clock.now() == NOON


def test_local_clock_counts_no_more_once_the_console_was_heard() -> None:
    machine = Machine(NOON)
    clock = ConsoleClock(machine)
    clock.heard("Sat, 21 Nov 2026 12:00:00 GMT", 0.0, 0.0)

    machine.ahead = 86_400.0
    machine.advance(10)

    assert clock.now() == pytest.approx(NOON + 10, abs=1)
