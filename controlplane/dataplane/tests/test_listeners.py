"""How many held requests a change wakes at a time."""

import asyncio

import pytest

from controlplane.dataplane.listeners import CONFIG, SNAPSHOT, Listener, Listeners


def woken_in_the_first_turn(bytes_each: int, held: int) -> int:
    """Of so many held requests, how many wake before others get their turn."""

    async def run() -> int:
        listeners = Listeners()
        those = [listeners.enter() for _ in range(held)]
        listeners.ring(bytes_each)
        woken = sum(_is_woken(one) for one in those)
        while not all(map(_is_woken, those)):
            await asyncio.sleep(0)
        for one in those:
            listeners.leave(one)
        return woken

    return asyncio.run(run())


def _is_woken(listener: Listener) -> bool:
    return listener._woken


@pytest.mark.parametrize(
    ("bytes_each", "held", "woken"),
    [
        (1, 100, 100),
        (1, 3000, 2000),
        (32 * 1024, 3000, 2000),
        (512 * 1024, 3000, 128),
        (512 * 1024 * 1024, 3000, 64),
    ],
)
def test_large_documents_wake_fewer_at_once_and_all_in_the_end(
    bytes_each: int, held: int, woken: int
) -> None:
    assert woken_in_the_first_turn(bytes_each, held) == woken


def test_a_change_wakes_those_who_hear_of_it_and_no_others() -> None:
    async def run() -> tuple[list[bool], list[bool]]:
        listeners = Listeners()
        those = [listeners.enter(hears) for hears in (SNAPSHOT, CONFIG)]
        listeners.ring(hears=CONFIG)
        first = [_is_woken(one) for one in those]
        listeners.ring()
        return first, [_is_woken(one) for one in those]

    first, second = asyncio.run(run())

    assert first == [False, True]
    assert second == [True, True]
