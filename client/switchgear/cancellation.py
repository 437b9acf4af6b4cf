"""Cancellation of calls that have not begun.

A guarded call stores its cancel sources (its switches, the forced breaker of its dependency) in a
context variable. If a source refuses the call, each wait inside the call (in the queue of a
bulkhead, in the back-off of a retry) ends at once and raises the refusal.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import chain
from typing import Protocol

from switchgear import async_backend
from switchgear.async_backend import AsyncBell
from switchgear.clock import alarm_setter
from switchgear.refusals import Refused

Callback = Callable[[], object]
Clock = Callable[[], float]


class CancelSource(Protocol):
    """Interface of what can refuse calls not yet begun: a guarded switch or a forced breaker."""

    def refusal(self) -> Refused | None:
        """Return the error that refuses a call now; None if the call may begin. Never blocks."""

    def subscribe(self, callback: Callback) -> Callback:
        """Call `callback` after each change that may refuse calls; return a function that stops it.

        `callback` runs in the thread that makes the change, and must neither block nor raise.
        """


Sources = Sequence[CancelSource]


class SourceScope:
    """The part of a context in which a cancel source applies to calls; `outer` encloses it."""

    __slots__ = ("cancellation", "is_over", "outer", "source")

    def __init__(self, source: CancelSource, outer: "SourceScope | None" = None) -> None:
        self.source = source
        self.outer = outer
        self.is_over = False
        """True once the block of the scope has ended; tasks that outlive the block ignore the
        scope."""
        self.cancellation: TaskCancellation | None = None


current_scope: ContextVar[SourceScope | None] = ContextVar("switchgear_cancel_scope", default=None)

is_waiting_skipped = False
"""True in tests that must not wait: see `switchgear.testing.no_wait`."""


class CancelToken:
    """A token by which a running call can check if it must stop; see :func:`cancel_token`."""

    def __init__(self, scope: SourceScope | None) -> None:
        self._sources = list(_sources_of(scope))

    @property
    def is_cancelled(self) -> bool:
        """True once a switch that guards this call is engaged."""
        return any(source.refusal() is not None for source in self._sources)

    def raise_if_cancelled(self) -> None:
        """Raise the refusal that cancels the call, if any; for a switch :class:`SwitchEngaged`."""
        for source in self._sources:
            if (refusal := source.refusal()) is not None:
                raise refusal

    def wait(self, seconds: float) -> bool:
        """Block for at most `seconds`; return True at once when the call is cancelled."""
        _wait_for_refusal(self._sources, seconds)
        return self.is_cancelled


def cancel_token() -> CancelToken:
    """Return the cancel token of the guarded calls that enclose the calling code.

    Long plain functions can use it to stop half-way. Outside of guards the token is never
    cancelled.
    """
    return CancelToken(current_scope.get())


class TaskCancellation:
    """A watch that cancels the running task as soon as `source` refuses the task's call."""

    def __init__(self, source: CancelSource) -> None:
        self._scope = async_backend.cancel_scope()
        self._source = source
        self._refusal: Refused | None = None
        self._unsubscribe = source.subscribe(self._on_source_change)
        self._on_source_change()  # The switch may have been engaged since it was last checked.

    def end(self, error: BaseException | None) -> None:
        """End the watch; raise the refusal if `error` is the cancellation that the watch caused."""
        self._unsubscribe()
        if self._scope.end(error) and self._refusal is not None:
            raise self._refusal from error

    def _on_source_change(self) -> None:
        if self._refusal is None and (refusal := self._source.refusal()) is not None:
            self._refusal = refusal
            self._scope.cancel_soon()


def enter(source: CancelSource, *, cancels: bool = False) -> SourceScope:
    """Apply the cancel source `source` to calls in this context, until :func:`leave`.

    If `cancels`, the running task is cancelled as soon as `source` refuses its call.
    """
    cancellation = TaskCancellation(source) if cancels else None
    outer = current_scope.get()
    while outer is not None and outer.is_over:  # It was left in another context.
        outer = outer.outer
    scope = SourceScope(source, outer)
    scope.cancellation = cancellation
    current_scope.set(scope)
    return scope


def leave(scope: SourceScope, error: BaseException | None = None) -> None:
    """End `scope`, whose code raised `error`; raise the refusal if `scope` cancelled that code.

    In a context other than the one in which :func:`enter` was called, the scope is only marked as
    over.
    """
    scope.is_over = True
    if current_scope.get() is scope:
        current_scope.set(scope.outer)
    if scope.cancellation is not None:
        scope.cancellation.end(error)


def find_refusal(sources: Sources = ()) -> Refused | None:
    """Return the refusal that ends the running call; None if the call may go on.

    It comes from `sources`, or from the cancel sources of the current context.
    """
    for source in chain(sources, _sources_of(current_scope.get())):
        if (refusal := source.refusal()) is not None:
            return refusal
    return None


def check(sources: Sources = (), cause: BaseException | None = None) -> None:
    """Raise the refusal if a cancellation source, such as a kill switch, refuses the running call.

    Both `sources` and the sources of this context are checked.
    `cause` becomes the cause of the raised error.
    """
    refusal = find_refusal(sources)
    if refusal is not None:
        raise refusal from cause


@contextmanager
def notify_on_refusal(sources: Sources, wake: Callback) -> Iterator[None]:
    """Within the block, call `wake` after each change that may refuse calls.

    Changes of `sources` and of the sources of this context count. `wake` may run in any thread.
    Changes before the block are not reported, so call :func:`find_refusal` first inside the block.
    """
    with _subscribe_all([*sources, *_sources_of(current_scope.get())], wake):
        yield


def sleep(seconds: float, sources: Sources = (), cause: BaseException | None = None) -> None:
    """Block for `seconds`; raise the refusal as soon as a cancel source refuses.

    The cancel sources are `sources` and those of this context. `cause` becomes the refusal's cause.
    """
    if not is_waiting_skipped and seconds > 0:
        if not sources and current_scope.get() is None:
            time.sleep(seconds)
            return
        _wait_for_refusal([*sources, *_sources_of(current_scope.get())], seconds)
    check(sources, cause)


def _wait_for_refusal(sources: Sources, seconds: float) -> None:
    """Block for `seconds`, or until one of `sources` refuses."""
    bell, ends = threading.Event(), time.monotonic() + seconds
    with _subscribe_all(sources, bell.set):
        # A switch that was engaged and released at once rings, but refuses nothing.
        while not any(source.refusal() for source in sources):
            if (left := ends - time.monotonic()) <= 0 or not bell.wait(left):
                return  # Also if a test has frozen the clock.
            bell.clear()


async def async_sleep(
    seconds: float, sources: Sources = (), cause: BaseException | None = None
) -> None:
    """Like :func:`sleep`, in a coroutine."""
    if is_waiting_skipped or seconds <= 0:
        await async_backend.sleep(0)
    elif not sources and current_scope.get() is None:
        await async_backend.sleep(seconds)
        return
    else:
        bell, ends = AsyncBell(), time.monotonic() + seconds
        with notify_on_refusal(sources, bell.ring):
            while find_refusal(sources) is None and (left := ends - time.monotonic()) > 0:
                if not await bell.wait(left):
                    break
    check(sources, cause)


def wait(bell: threading.Event, seconds: float, clock: Clock = time.monotonic) -> None:
    """Block until `bell` is set, for at most `seconds` by `clock`."""
    set_alarm = alarm_setter(clock)
    if is_waiting_skipped:
        return
    if set_alarm is None:
        bell.wait(seconds)
        return
    alarm = set_alarm(seconds, bell.set)
    if not bell.wait(alarm.real_seconds):
        alarm.advance()


async def async_wait(bell: AsyncBell, seconds: float, clock: Clock = time.monotonic) -> None:
    """Wait until `bell` rings, in a coroutine, for at most `seconds` by `clock`."""
    set_alarm = alarm_setter(clock)
    if is_waiting_skipped:
        await async_backend.sleep(0)
    elif set_alarm is None:
        await bell.wait(seconds)
    else:
        alarm = set_alarm(seconds, bell.ring)
        if not await bell.wait(alarm.real_seconds):
            alarm.advance()


def _sources_of(scope: SourceScope | None) -> Iterator[CancelSource]:
    while scope is not None:
        if not scope.is_over:
            yield scope.source
        scope = scope.outer


@contextmanager
def _subscribe_all(sources: Sources, wake: Callback) -> Iterator[None]:
    ends = [source.subscribe(partial(_wake_if_refused, source, wake)) for source in sources]
    try:
        yield
    finally:
        for end in ends:
            end()


def _wake_if_refused(source: CancelSource, wake: Callback) -> None:
    if source.refusal() is not None:
        with suppress(RuntimeError):  # The event loop is closed: nothing waits there any more.
            wake()
