"""A switch that was thrown in haste is forgotten, and nobody knows what it was for."""

from datetime import timedelta

import pytest

from switchgear import SwitchEngaged
from switchgear.testing import Console, FakeClock

A_WEEK = timedelta(weeks=1).total_seconds()


class Flag:
    """As it is often written."""

    is_stopped = False


def test_a_flag_is_still_set_after_a_week_and_says_nothing() -> None:
    clock, flag = FakeClock(), Flag()
    flag.is_stopped = True

    clock.advance(A_WEEK)

    assert flag.is_stopped
    assert not hasattr(flag, "reason")


def test_an_engaged_switch_says_why_to_everyone_whom_it_stops() -> None:
    console = Console(FakeClock())
    gear = console.client()
    console.engage("segment:finance", reason="Totals of others are shown, INC-4711")

    @gear.guard(segment=lambda department: department)
    def ask(department: str) -> str:
        return f"totals of {department}"

    with pytest.raises(SwitchEngaged, match="INC-4711") as raised:
        ask("finance")

    assert (raised.value.switch, raised.value.reason) == (
        "segment:finance",
        "Totals of others are shown, INC-4711",
    )
    assert ask("hr") == "totals of hr"


def test_an_engagement_that_may_release_itself_does_so_also_while_the_console_is_silent() -> None:
    clock = FakeClock()
    console = Console(clock)
    gear = console.client()
    console.engage("feature:chat", expires_in=timedelta(hours=24), on_expiry="release")
    assert not gear.allowed(feature="chat")

    clock.advance(timedelta(hours=24, seconds=6).total_seconds())

    assert gear.allowed(feature="chat")


def test_one_that_guards_a_leak_holds_however_long_nobody_looks() -> None:
    clock = FakeClock()
    console = Console(clock)
    gear = console.client()
    console.engage("segment:finance", expires_in=timedelta(hours=24))

    clock.advance(A_WEEK)

    assert not gear.allowed(segment="finance")
