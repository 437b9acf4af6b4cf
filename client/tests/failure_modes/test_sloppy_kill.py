"""A switch engaged in haste is not forgotten: it names its reason and expires by itself."""

from datetime import timedelta

import pytest

from switchgear import SwitchEngaged
from switchgear.testing import Console, FakeClock

A_WEEK = timedelta(weeks=1).total_seconds()


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


def test_a_release_sends_all_back_at_once_and_a_ramp_a_few_who_stay() -> None:
    console = Console(FakeClock())
    gear = console.client()

    def let_in() -> set[int]:
        return {n for n in range(1000) if gear.allowed(feature="chat", targeting_key=f"user-{n}")}

    console.engage("feature:chat")
    assert let_in() == set()
    console.release("feature:chat")
    assert len(let_in()) == 1000

    console.engage("feature:chat")
    console.ramp("feature:chat", 5)
    first = let_in()
    console.ramp("feature:chat", 25)
    second = let_in()

    assert 20 <= len(first) <= 100
    assert 180 <= len(second) <= 320
    assert first < second
