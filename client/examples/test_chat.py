"""Example tests of a service whose calls can be stopped by switches."""

import pytest

from switchgear import SwitchEngaged, Switchgear
from switchgear.testing import Console, FakeClock, engaged

gear = Switchgear(None)  # yours: import what your service has


@gear.guard(feature="chat", segment=lambda department: department)
def chat(user: str, department: str) -> str:
    return f"Hello, {user}."


def test_chat_is_stopped_while_its_switch_is_engaged() -> None:
    with engaged("feature:chat"), pytest.raises(SwitchEngaged):  # for every client of the process
        chat("kim", "finance")

    assert chat("kim", "finance") == "Hello, kim."


@engaged("segment:finance")
def test_finance_is_stopped_and_retail_goes_on() -> None:
    with pytest.raises(SwitchEngaged) as caught:
        chat("kim", "finance")

    assert caught.value.switch == "segment:finance"
    assert chat("lee", "retail") == "Hello, lee."


def test_engagement_ends_by_itself() -> None:
    clock = FakeClock()
    console = Console(clock)
    gear = console.client()  # follows immediately, without threads, network or disk

    console.engage("feature:chat", expires_in=60, on_expiry="release")
    assert not gear.allowed(feature="chat")
    clock.advance(65)
    assert gear.allowed(feature="chat")


def test_same_users_are_in_at_every_run() -> None:
    console = Console()
    gear = console.client()

    console.ramp("feature:chat", 50)
    users = ("kim", "lee", "choi", "park")
    allowed = [user for user in users if gear.allowed(feature="chat", targeting_key=user)]
    assert allowed == ["kim", "choi"]
