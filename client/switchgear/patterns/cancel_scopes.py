"""Cancellation of asyncio and trio tasks at a time limit.

For asyncio, like :func:`asyncio.timeout` but with one timer for all tasks of a loop: most calls end
in time, and a timer for each call would cost more than everything else. For trio, cancel scopes.
"""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from switchgear.async_backend import TrioScope

if TYPE_CHECKING:
    import asyncio

MAX_UNPAUSED_TASKS = 100
MIN_TIMER_PAUSE_SECONDS = 0.01
"""Shortest pause between two runs of a timer with many tasks, and so the longest delay of a
cancellation."""


class TaskCancelScope:
    """A scope that cancels one asyncio task if it takes more than `seconds`."""

    __slots__ = ("cancelling", "has_cancelled", "is_absorbed", "task", "timer", "when")

    def __init__(
        self, task: "asyncio.Task[Any]", loop: "asyncio.AbstractEventLoop", seconds: float
    ) -> None:
        self.task = task
        self.cancelling = task.cancelling()
        self.has_cancelled = False
        self.is_absorbed = False
        timer = _thread_timer.timer
        if timer is None or timer.loop is not loop:
            timer = _thread_timer.timer = _LoopTimer(loop)
        self.timer: _LoopTimer = timer
        self.when = when = loop.time() + seconds
        timer.waiting[self] = None
        if timer.handle is None or when < timer.due:
            timer.arm(when)

    def close(self) -> None:
        self.timer.waiting.pop(self, None)

    def cancel(self) -> None:
        self.has_cancelled = True
        self.task.cancel()

    def cancel_soon(self) -> None:
        """Cancel the task before its time limit, from any thread."""
        with suppress(RuntimeError):  # The event loop is closed.
            self.timer.loop.call_soon_threadsafe(self._cancel_if_waiting)

    def absorb(self, error: BaseException | None) -> bool:
        """Undo the cancellation of the task by this scope.

        Return True if nothing else cancelled the task.
        """
        if not self.has_cancelled or self.is_absorbed:
            return False
        self.is_absorbed = True
        from asyncio import CancelledError

        return self.task.uncancel() <= self.cancelling and isinstance(error, CancelledError)

    def _cancel_if_waiting(self) -> None:
        if self in self.timer.waiting:
            self.close()
            self.cancel()


class TrioCancelScope:
    """A scope that cancels one trio task if it takes more than `seconds`.

    `outer` is a scope around this one, in the same task, with the same end. It is suspended while
    this one is open: if both were cancelled at once, the outer scope would catch the cancellation,
    and code between the two would see no timeout.
    """

    has_cancelled = True
    """Always True, since the outcome is known only when the scope is closed."""

    def __init__(self, trio: Any, seconds: float, outer: "TrioCancelScope | None") -> None:
        self._scope = TrioScope(trio, seconds)
        self.task = self._scope.task
        self._outer = outer if outer is not None and outer.task is self.task else None
        self._inner: TrioCancelScope | None = None
        if self._outer is not None:
            self._outer._inner = self
            self._outer._scope.rest(is_resting=True)

    def close(self) -> None:
        """Stop the timer at the end of the call, before :meth:`absorb`."""
        self._scope.rest(is_resting=True)
        if self._outer is not None:
            self._outer._inner = None
            self._outer._scope.rest(is_resting=False)

    def cancel_soon(self) -> None:
        """Cancel the scope before its time limit, from any thread."""
        if self._inner is None:
            self._scope.cancel_soon()
        else:
            self._inner.cancel_soon()

    def absorb(self, error: BaseException | None) -> bool:
        """Close the scope. Return True if `error` is the cancellation by this scope."""
        return self._scope.end(error)


class _LoopTimer:
    """The timer that all scopes of an event loop share; it cancels those whose time is over.

    It is not stopped when a scope ends early, so it may fire with nothing to cancel.
    """

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self.loop = loop
        self.waiting: dict[TaskCancelScope, None] = {}
        self.handle: asyncio.TimerHandle | None = None
        self.due = 0.0

    def arm(self, when: float) -> None:
        if self.handle is not None:
            self.handle.cancel()
        self.due = when
        self.handle = self.loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        self.handle = None
        # A loop runs timers within its clock's resolution, so slightly early.
        until = max(self.loop.time(), self.due)
        for scope in [each for each in self.waiting if each.when <= until]:
            del self.waiting[scope]
            scope.cancel()
        if self.waiting:
            first = min(each.when for each in self.waiting)
            pause = MIN_TIMER_PAUSE_SECONDS if len(self.waiting) > MAX_UNPAUSED_TASKS else 0.0
            self.arm(max(first, until + pause))


class _ThreadTimer(threading.local):
    timer: _LoopTimer | None = None
    """The timer of the loop that ran last in this thread."""


_thread_timer = _ThreadTimer()
