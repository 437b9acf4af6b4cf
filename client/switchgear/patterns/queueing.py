"""Waiting in the queue of a bulkhead: for a permit, for the end of the time, or for a refusal.

Both functions return when `waiter` is admitted or displaced, after `seconds`, or when one of
`sources` or of the context refuses the call. `bell` is rung by the waiter's `wake`.
"""

import threading
import time
from functools import partial

from switchgear import cancellation
from switchgear.cancellation import Sources
from switchgear.lazy import asyncio
from switchgear.patterns.places import Waiter


def wait(waiter: Waiter, bell: threading.Event, seconds: float, sources: Sources) -> None:
    """Block."""
    if cancellation.is_waiting_skipped:
        return
    ends = time.monotonic() + seconds
    with cancellation.watching(sources, bell.set):
        while _goes_on(waiter, sources) and (left := ends - time.monotonic()) > 0:
            bell.wait(left)
            bell.clear()


async def async_wait(
    waiter: Waiter, bell: "asyncio.Event", seconds: float, sources: Sources
) -> None:
    """Wait in a coroutine."""
    if cancellation.is_waiting_skipped:
        await asyncio.sleep(0)
        return
    loop, is_over = asyncio.get_running_loop(), asyncio.Event()

    def expire() -> None:
        is_over.set()
        bell.set()

    timer = loop.call_later(seconds, expire)
    try:
        with cancellation.watching(sources, partial(loop.call_soon_threadsafe, bell.set)):
            while _goes_on(waiter, sources) and not is_over.is_set():
                await bell.wait()
                bell.clear()
    finally:
        timer.cancel()


def _goes_on(waiter: Waiter, sources: Sources) -> bool:
    return waiter.state == "waiting" and cancellation.find_refusal(sources) is None
