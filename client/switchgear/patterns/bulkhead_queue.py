"""The queue of a bulkhead: calls wait for a permit, until a timeout or a refusal.

`wait` and `async_wait` return when `waiter` is admitted or displaced, after `seconds` by `clock`,
or when a source in `sources` or in the context refuses the call. The waiter's `wake` sets
`bell`.
"""

import threading
from collections.abc import Callable

from switchgear import async_backend, cancellation
from switchgear.async_backend import AsyncBell
from switchgear.cancellation import Sources
from switchgear.journal import log_error
from switchgear.patterns.time_limits import Clock


class Waiter:
    """A call in the queue of a bulkhead, or about to enter it.

    `wake`, None for a call that can't wait, is called from any thread once `state` is "admitted" or
    "displaced"; if it raises, the call can't go on. `reason` names the limit that rejected a call.
    """

    __slots__ = ("key", "rank", "reason", "state", "wake")

    def __init__(self, key: str | None, priority: int, wake: Callable[[], object] | None) -> None:
        self.key = key
        self.rank = (-priority, 0)
        self.wake = wake
        self.state = "waiting"
        self.reason = ""


def rank_of(waiter: Waiter) -> tuple[int, int]:
    return waiter.rank


def wake(waiter: Waiter) -> bool:
    try:
        if waiter.wake is not None:
            waiter.wake()
    except RuntimeError:  # Its event loop is closed, so the call can't go on.
        return False
    except Exception:
        log_error("a call that waits for a bulkhead could not be woken")
        return False
    return True


def wait(
    waiter: Waiter, bell: threading.Event, seconds: float, sources: Sources, clock: Clock
) -> None:
    ends = clock() + seconds
    with cancellation.notify_on_refusal(sources, bell.set):
        while _goes_on(waiter, sources) and (left := ends - clock()) > 0:
            cancellation.wait(bell, left, clock)
            bell.clear()


async def async_wait(
    waiter: Waiter, bell: AsyncBell, seconds: float, sources: Sources, clock: Clock
) -> None:
    if cancellation.is_waiting_skipped:
        await async_backend.sleep(0)
    ends = clock() + seconds
    with cancellation.notify_on_refusal(sources, bell.ring):
        while _goes_on(waiter, sources) and (left := ends - clock()) > 0:
            await cancellation.async_wait(bell, left, clock)


def _goes_on(waiter: Waiter, sources: Sources) -> bool:
    is_waiting = waiter.state == "waiting" and not cancellation.is_waiting_skipped
    return is_waiting and cancellation.find_refusal(sources) is None
