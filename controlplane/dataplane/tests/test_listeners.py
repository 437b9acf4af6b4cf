"""Batches of held requests that a change wakes at a time."""

import asyncio

import pytest

from controlplane.core.errors import Unavailable
from controlplane.dataplane.memory import listeners as module
from controlplane.dataplane.memory.listeners import CONFIG, SNAPSHOT, Listener, Listeners


def woken_in_the_first_turn(bytes_each: int, held: int) -> int:
    """Return how many held requests wake before other tasks run."""

    async def run() -> int:
        listeners = Listeners()
        those = [listeners.enter() for _ in range(held)]
        listeners.notify(bytes_each)
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


def test_a_small_event_does_not_hasten_those_who_still_wait_for_a_large_one() -> None:
    async def run() -> int:
        listeners = Listeners()
        those = [listeners.enter() for _ in range(3000)]
        listeners.notify(512 * 1024)
        listeners.notify(topic=CONFIG)
        await asyncio.sleep(0)
        return sum(_is_woken(one) for one in those)

    assert asyncio.run(run()) == 2 * 128


def test_a_change_wakes_those_who_hear_of_it_and_no_others() -> None:
    async def run() -> tuple[list[bool], list[bool]]:
        listeners = Listeners()
        those = [listeners.enter(hears) for hears in (SNAPSHOT, CONFIG)]
        listeners.notify(topic=CONFIG)
        first = [_is_woken(one) for one in those]
        listeners.notify()
        return first, [_is_woken(one) for one in those]

    first, second = asyncio.run(run())

    assert first == [False, True]
    assert second == [True, True]


def held_by(listeners: Listeners, *holders: int) -> list[Listener]:
    return [listeners.enter(holder=holder) for holder in holders]


def test_token_with_most_requests_gives_up_its_oldest_to_a_token_with_fewer() -> None:
    async def run() -> list[bool]:
        listeners = Listeners(most=4)
        greedy = held_by(listeners, 1, 1, 1, 1)
        held_by(listeners, 2, 2)
        with pytest.raises(Unavailable):
            listeners.enter(holder=2)
        assert len(listeners) == 4
        for one in greedy:
            listeners.leave(one)
        assert len(listeners) == 2
        return [one.dismissed and _is_woken(one) for one in greedy]

    assert asyncio.run(run()) == [True, True, False, False]


def test_token_that_holds_all_places_gets_no_more() -> None:
    async def run() -> None:
        listeners = Listeners(most=2)
        held_by(listeners, 1, 1)
        with pytest.raises(Unavailable):
            listeners.enter(holder=1)

    asyncio.run(run())


def test_dismissed_request_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.0)
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.01)

    async def run() -> tuple[bool, bool, bool]:
        listeners = Listeners(most=2)
        unread, _ = held_by(listeners, 1, 1)
        sending = asyncio.ensure_future(unread.send(asyncio.sleep(10)))
        held_by(listeners, 2)
        await asyncio.wait({sending}, timeout=1)
        return unread.dismissed, unread.stuck, sending.cancelled()

    assert asyncio.run(run()) == (True, True, True)
