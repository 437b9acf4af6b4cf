"""Time that calls wait in queues of this process, which breakers exclude from durations.

A pattern that makes calls wait does so inside `with QueueWait():`. A breaker subtracts that time
with :func:`queued_seconds` if a call begins and ends in one context, and with a :class:`CallTimer`
otherwise.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from switchgear.failures.error_labels import is_timeout
from switchgear.patterns.time_limits import current_limit
from switchgear.patterns.timeout_errors import CallTimeout, DeadlineExceeded

TOLERANCE_SECONDS = 0.1
"""Allowance for the delay with which a timeout is raised."""

Clock = Callable[[], float]

_queued_seconds: ContextVar[float] = ContextVar("switchgear_queued", default=0.0)
_last_wait: ContextVar[tuple[float, float, Clock] | None] = ContextVar(
    "switchgear_last_wait", default=None
)
"""Seconds of the last wait, the time at its end, and the clock of both."""
_innermost: ContextVar["CallTimer | None"] = ContextVar("switchgear_call_timer", default=None)

queued_seconds = _queued_seconds.get
"""Return the seconds that calls have waited in this context so far."""


class QueueWait:
    """A context manager around one wait in a queue; pauses the timers of the waiting call."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock

    def __enter__(self) -> None:
        self._timers: list[CallTimer] = []
        """The timers that run in this context, innermost first."""
        timer = _innermost.get()
        while timer is not None:
            if not timer.is_stopped:
                timer.pause()
                self._timers.append(timer)
            timer = timer.outer
        self._began = self._clock()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        now = self._clock()
        seconds = now - self._began
        _queued_seconds.set(queued_seconds() + seconds)
        _last_wait.set((seconds, now, self._clock))
        for timer in self._timers:
            timer.resume()


class CallTimer:
    """A stopwatch for one call that pauses while the call is queued.

    It may be stopped in another context.
    """

    __slots__ = ("_began", "_clock", "_paused_at", "_pauses", "is_stopped", "outer")
    outer: "CallTimer | None"
    is_stopped: bool

    def __init__(self, clock: Clock) -> None:
        outer = _innermost.get()
        while outer is not None and outer.is_stopped:
            outer = outer.outer
        self.outer = outer
        self.is_stopped = False
        self._clock = clock
        self._pauses = 0
        """Waits in progress: several tasks of the call may wait at the same time."""
        self._began = self._paused_at = clock()
        _innermost.set(self)

    def stop(self) -> float:
        """Stop the timer, and return the seconds of the call without the pauses."""
        self.is_stopped = True
        if _innermost.get() is self:
            _innermost.set(self.outer)
        return (self._paused_at if self._pauses else self._clock()) - self._began

    def pause(self) -> None:
        """Pause the timer until :meth:`resume` was called as often as this method."""
        if not self._pauses:
            self._paused_at = self._clock()
        self._pauses += 1

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses:
            self._began += self._clock() - self._paused_at


def is_queue_timeout(error: BaseException) -> bool:
    """Return True if `error` is a timeout of a call that spent most of its time in a queue.

    That is, the call ran for less time than it had waited in its last queue.
    """
    wait = _last_wait.get()
    if wait is None:
        return False
    if isinstance(error, CallTimeout | DeadlineExceeded):
        allowed = error.seconds
    else:
        limit = current_limit()
        if limit is None or limit.until > limit.clock() or not is_timeout(error):
            return False
        allowed = limit.source.seconds
    waited, ended, clock = wait
    called = clock() - ended
    return called < waited and waited + called <= allowed + TOLERANCE_SECONDS
