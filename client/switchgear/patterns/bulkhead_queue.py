"""Waiting in the queue of a bulkhead: for a permit, for the end of the time, or for a refusal.

Both functions return when `waiter` is admitted or displaced, after `seconds` by `clock`, or when
one of `sources` or of the context refuses the call. `bell` is rung by the waiter's `wake`.
"""

import threading

from switchgear import async_backend, cancellation
from switchgear.async_backend import AsyncBell
from switchgear.cancellation import Sources
from switchgear.patterns.time_limits import Clock
from switchgear.patterns.waiter import Waiter


def wait(
    waiter: Waiter, bell: threading.Event, seconds: float, sources: Sources, clock: Clock
) -> None:
    """Block."""
    ends = clock() + seconds
    with cancellation.notify_on_refusal(sources, bell.set):
        while _goes_on(waiter, sources) and (left := ends - clock()) > 0:
            cancellation.wait(bell, left, clock)
            bell.clear()


async def async_wait(
    waiter: Waiter, bell: AsyncBell, seconds: float, sources: Sources, clock: Clock
) -> None:
    """Wait in a coroutine."""
    if cancellation.is_waiting_skipped:
        await async_backend.sleep(0)
    ends = clock() + seconds
    with cancellation.notify_on_refusal(sources, bell.ring):
        while _goes_on(waiter, sources) and (left := ends - clock()) > 0:
            await cancellation.async_wait(bell, left, clock)


def _goes_on(waiter: Waiter, sources: Sources) -> bool:
    is_waiting = waiter.state == "waiting" and not cancellation.is_waiting_skipped
    return is_waiting and cancellation.find_refusal(sources) is None
