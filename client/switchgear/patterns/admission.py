"""The queue in front of a full bulkhead: calls wait for a permit, by priority."""

import operator
import threading
from collections.abc import Callable
from typing import Any

from switchgear import async_backend, cancellation
from switchgear.async_backend import AsyncBell
from switchgear.cancellation import Sources
from switchgear.journal import log, record
from switchgear.patterns.parameters import BulkheadParameters
from switchgear.patterns.permits import PermitPool, Waiter
from switchgear.patterns.queue_time import QueueWait
from switchgear.patterns.time_limits import Clock, remaining_seconds
from switchgear.refusals import BulkheadFull


class AdmissionQueue:
    """The queue of calls for the bulkhead `name`, in which threads block and coroutines suspend."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._has_warned = False

    def wait(
        self,
        permits: PermitPool,
        key: str | None,
        priority: object,
        parameters: BulkheadParameters | None,
        sources: Sources,
    ) -> None:
        """Wait for a permit for a call with this `key`, and take it.

        Raise :class:`BulkheadFull` if the queue is full or the wait too long. Raise the refusal of
        a switch around the call, or of one of `sources`, such as a breaker that is forced open.
        """
        seconds, until = _max_wait(parameters)
        bell = threading.Event()
        can_wait = seconds > 0 and not async_backend.is_running()
        waiter = self._make_waiter(key, priority, bell.set if can_wait else None)
        try:
            is_queued = permits.enqueue(waiter) == "waiting"
            if seconds > 0 and not can_wait:
                waiter.reason += "; a plain function can't wait in an event loop"
            if is_queued:
                ends = self._clock() + seconds
                with QueueWait(self._clock), cancellation.notify_on_refusal(sources, bell.set):
                    while _goes_on(waiter, sources) and (left := ends - self._clock()) > 0:
                        cancellation.wait(bell, left, self._clock)
                        bell.clear()
                cancellation.check(sources)
            self._end_wait(permits, waiter, until)
        except BaseException:
            permits.abandon(waiter)
            raise

    async def async_wait(
        self,
        permits: PermitPool,
        key: str | None,
        priority: object,
        parameters: BulkheadParameters | None,
        sources: Sources,
    ) -> None:
        """Like :meth:`wait`, for coroutines."""
        seconds, until = _max_wait(parameters)
        bell = AsyncBell()
        waiter = self._make_waiter(key, priority, bell.ring if seconds > 0 else None)
        try:
            if permits.enqueue(waiter) == "waiting":
                if cancellation.is_waiting_skipped:
                    await async_backend.sleep(0)
                ends = self._clock() + seconds
                with QueueWait(self._clock), cancellation.notify_on_refusal(sources, bell.ring):
                    while _goes_on(waiter, sources) and (left := ends - self._clock()) > 0:
                        await cancellation.async_wait(bell, left, self._clock)
                cancellation.check(sources)
            self._end_wait(permits, waiter, until)
        except BaseException:
            permits.abandon(waiter)
            raise

    def _end_wait(self, permits: PermitPool, waiter: Waiter, until: str) -> None:
        state = permits.dequeue(waiter)
        if state != "admitted":
            why = {"rejected": waiter.reason, "gone": f"no permit {until}"}.get(state, state)
            permits.count_rejection()
            record("bulkhead_full", self._name, why=why)
            raise BulkheadFull(self._name, why)

    def _make_waiter(
        self, key: str | None, priority: Any, wake: Callable[[], object] | None
    ) -> Waiter:
        """Return a queue entry for a call. An invalid `priority` counts as 0 and is logged once."""
        try:
            return Waiter(key, 0 if priority is None else operator.index(priority), wake)
        except Exception:  # A foreign `__index__` may raise anything.
            if not self._has_warned:
                self._has_warned = True
                log.warning(
                    "switchgear: a priority in bulkhead %s is not a whole number but %s; using 0",
                    *(self._name, type(priority).__name__),
                )
            return Waiter(key, 0, wake)


def _max_wait(parameters: BulkheadParameters | None) -> tuple[float, str]:
    """Return the maximum wait in the queue, in seconds, and its description for error messages."""
    seconds = parameters.wait_seconds if parameters is not None and parameters.queue else 0.0
    left = remaining_seconds()
    if left is not None and left < seconds:
        return max(left, 0.0), "before the deadline"
    return seconds, f"within {seconds:.1f} s"


def _goes_on(waiter: Waiter, sources: Sources) -> bool:
    is_waiting = waiter.state == "waiting" and not cancellation.is_waiting_skipped
    return is_waiting and cancellation.find_refusal(sources) is None


def validate_priority(given: Any) -> Any:
    """Return `given` if it is a valid priority: a whole number or a function of a call's arguments.

    None counts as 0. Raise :class:`TypeError` for any other value.
    """
    if given is None:
        return 0
    if not callable(given) and not hasattr(type(given), "__index__"):
        raise TypeError(f"priority must be a whole number or a function, not {given!r:.50}")
    return given
