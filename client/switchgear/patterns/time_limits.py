"""Time limits in the current context, and the cancellation of code that exceeds them.

The end time is passed along in a context variable: into calls, into tasks begun inside, and over
the wire by `propagation`. An inner limit never ends later than the outer one.
"""

import math
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import Any

from switchgear.async_backend import trio_here
from switchgear.clock import Alarm, alarm_setter
from switchgear.patterns.cancel_scopes import TaskCancelScope, TrioCancelScope
from switchgear.patterns.parameters import MAX_SECONDS
from switchgear.patterns.timeout_errors import DeadlineExceeded, NoTimeLeft

Clock = Callable[[], float]
FOREVER = math.inf


class TimeLimit:
    """A time limit for the code in one context, which ends at `until` on `clock`.

    Every call creates a limit: therefore attributes that are rarely set have defaults on the class,
    and a limit is in no reference cycle.
    """

    is_over = False
    """True after its end: the limit no longer applies to tasks that outlive it."""
    retries = 0
    """Number of retries made under this limit."""
    cancel_scope: TaskCancelScope | TrioCancelScope | None = None
    alarm: Alarm | None = None
    """An alarm that cancels when a fake clock is advanced past the limit."""
    inherited_from: "TimeLimit | None" = None
    """The outer limit that ends first and so sets the end of this limit."""
    outer: "TimeLimit | None" = None
    previous: "TimeLimit | None" = None
    """The limit in force when this one began: `outer`, unless outer limits are ignored."""

    def __init__(self, owner: object, seconds: float, until: float, clock: Clock) -> None:
        self.owner = owner
        self.seconds = seconds
        self.until = until
        self.clock = clock

    @property
    def source(self) -> "TimeLimit":
        """The outer limit that sets the end of this one; this limit itself if it sets its own."""
        return self.inherited_from or self

    def make_error(self, kind: type[DeadlineExceeded] = DeadlineExceeded) -> DeadlineExceeded:
        """Return the error to raise when this limit is over."""
        return kind(self.seconds, self.retries + 1, self.retries > 0)


_limit: ContextVar[TimeLimit | None] = ContextVar("switchgear_limit", default=None)


def remaining_seconds() -> float | None:
    """Return the seconds left for the code in this context, None without a limit, 0.0 if over."""
    limit = current_limit()
    return None if limit is None else max(limit.until - limit.clock(), 0.0)


def current_limit() -> TimeLimit | None:
    """Return the time limit in force in this context, None without one."""
    limit = _innermost_limit()
    return None if limit is None or limit.until == FOREVER else limit


def _innermost_limit() -> TimeLimit | None:
    limit = _limit.get()
    while limit is not None and limit.is_over:
        limit = limit.previous
    return limit


def begin(owner: object, seconds: float | None, clock: Clock) -> TimeLimit | None:
    """Begin a time limit of `seconds` for this context, or less if an outer limit ends earlier.

    Return None if neither limits the context. Raise :class:`NoTimeLeft` if no time is left.
    """
    outer = _limit.get()
    while outer is not None and outer.is_over:
        outer = outer.previous
    if outer is None or (until := outer.until) == FOREVER:
        if seconds is None:
            return None
        limit = TimeLimit(owner, seconds, clock() + seconds, clock)
    else:
        outer_clock = outer.clock
        now = outer_clock()
        if seconds is not None and now + seconds < until:
            began = now if clock is outer_clock else clock()
            limit = TimeLimit(owner, seconds, began + seconds, clock)
        elif now < until:
            limit = TimeLimit(owner, outer.seconds, until, outer_clock)
            limit.inherited_from = outer.inherited_from or outer
        else:
            raise outer.source.make_error(NoTimeLeft)
        limit.outer = outer
    limit.previous = outer
    _limit.set(limit)
    return limit


def begin_detached(owner: object, seconds: float, until: float, clock: Clock) -> TimeLimit:
    """Limit this context until `until` (:data:`math.inf` for no limit), ignoring outer limits.

    `seconds` is the duration of the limit that error messages name.
    """
    limit = TimeLimit(owner, seconds, until, clock)
    limit.previous = _innermost_limit()
    _limit.set(limit)
    return limit


def arm_cancellation(limit: TimeLimit) -> None:
    """Cancel the running task of asyncio or trio when `limit` is over.

    Do nothing if the outer limit that sets the end already cancels the same task.
    """
    loaded = sys.modules.get("asyncio")
    try:
        loop = loaded.get_running_loop()  # type: ignore[union-attr]
        task = loaded.current_task(loop)  # type: ignore[union-attr]
    except (RuntimeError, AttributeError):  # No event loop; another thread may be importing it.
        task = None
    if task is None:
        _arm_trio_cancellation(limit)
        return
    inherited = None if limit.inherited_from is None else limit.inherited_from.cancel_scope
    if inherited is not None and inherited.task is task:
        limit.cancel_scope = inherited
        return
    cancel_scope = limit.cancel_scope = TaskCancelScope(task, loop, limit.until - limit.clock())
    if limit.clock is not monotonic:
        limit.alarm = _set_alarm(limit, cancel_scope)


def _arm_trio_cancellation(limit: TimeLimit) -> None:
    trio = trio_here()
    if trio is None:
        return
    outer = limit.outer
    while outer is not None and outer.cancel_scope is None:
        outer = outer.outer
    shared = None if outer is None or outer.until != limit.until else outer.cancel_scope
    outer_scope = shared if isinstance(shared, TrioCancelScope) else None
    cancel_scope = limit.cancel_scope = TrioCancelScope(
        trio, limit.until - limit.clock(), outer_scope
    )
    limit.alarm = _set_alarm(limit, cancel_scope)


def _set_alarm(limit: TimeLimit, cancel_scope: TaskCancelScope | TrioCancelScope) -> Alarm | None:
    set_alarm = alarm_setter(limit.clock)
    if set_alarm is None:
        return None
    return set_alarm(limit.until - limit.clock(), cancel_scope.cancel_soon)


@dataclass(eq=False)
class StreamTimeLimit:
    """Context manager around each step of a stream that has one time limit from start to end.

    The limit is in force during each step, not between steps. Each step ends with a call of `leave`
    with the limit and the error of the step. With `cuts`, a step that exceeds the limit is
    cancelled. A step that would begin after the limit raises :class:`NoTimeLeft`.
    """

    owner: object
    seconds: float | None
    clock: Clock
    leave: Callable[[TimeLimit, BaseException | None], None]
    cuts: bool
    _until: float | None = None
    _limit: TimeLimit | None = None
    _retries: int = 0

    def __enter__(self) -> None:
        seconds = self.seconds
        if seconds is not None:
            now = self.clock()
            if self._until is None:
                self._until = now + seconds
            seconds = self._until - now
            if seconds <= 0:
                raise NoTimeLeft(self.seconds or 0.0, self._retries + 1, self._retries > 0)
        limit = self._limit = begin(self.owner, seconds, self.clock)
        if limit is None:
            return
        if limit.inherited_from is None and self.seconds is not None:
            limit.seconds = self.seconds
        limit.retries = self._retries
        if self.cuts:
            arm_cancellation(limit)

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        limit, self._limit = self._limit, None
        if limit is not None:
            self._retries = limit.retries
            self.leave(limit, error)


def absorb_cancellation(limit: TimeLimit, error: BaseException | None) -> bool:
    """Undo the cancellation of the task by `limit`. Return True if nothing else caused `error`."""
    cancel_scope = limit.cancel_scope
    return cancel_scope is not None and cancel_scope.has_cancelled and cancel_scope.absorb(error)


def end(limit: TimeLimit) -> None:
    """End `limit`, so that the limit around it is in force again in this context.

    In a context other than the one it began in, only mark it as over.
    """
    limit.is_over = True
    cancel_scope = limit.cancel_scope
    if cancel_scope is not None and (
        limit.inherited_from is None or limit.inherited_from.cancel_scope is not cancel_scope
    ):
        cancel_scope.close()
    if _limit.get() is limit:
        _limit.set(limit.previous)


def end_here(limit: TimeLimit) -> None:
    """Like :func:`end`, for plain functions, which are never cancelled and end where they began."""
    limit.is_over = True
    _limit.set(limit.previous)


def find_limit(owner: object) -> TimeLimit | None:
    """Return the innermost limit in this context that `owner` began, None without one."""
    limit = _limit.get()
    while limit is not None and (limit.owner is not owner or limit.is_over):
        limit = limit.previous
    return limit


def count_retry() -> None:
    """Count a retry in every limit in force in this context."""
    limit = current_limit()
    while limit is not None:
        limit.retries += 1
        limit = limit.outer


def validate_seconds(seconds: float | None) -> float | None:
    """Return `seconds` unchanged.

    Raise :class:`TypeError` for a value that is not a number, and :class:`ValueError` for one that
    is not above 0 or too large.
    """
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"seconds must be a number, not {seconds!r:.50}")
    if not 0 < seconds <= MAX_SECONDS:
        raise ValueError(f"seconds must be above 0 and at most {MAX_SECONDS:g}, not {seconds:g}")
    return seconds
