"""The async library that runs the current coroutine: asyncio or trio, also under anyio.

This module imports neither, since a program that runs asyncio or trio has imported it. Under any
other library, coroutines get the error that asyncio raises without a running event loop.
"""

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def trio_here() -> Any:
    """Return the module `trio` if this thread runs a trio task, else None."""
    trio = sys.modules.get("trio")
    # asyncio goes first: its loop may run within a task of trio.
    if trio is None or _asyncio_task() is not None:
        return None
    try:
        trio.lowlevel.current_task()
    except (RuntimeError, AttributeError):  # No task; another thread is importing trio.
        return None
    return trio


def is_running() -> bool:
    """Return True if an event loop of asyncio or of trio runs in this thread."""
    asyncio = sys.modules.get("asyncio")
    with suppress(RuntimeError, AttributeError):
        if asyncio is not None and asyncio.get_running_loop() is not None:
            return True
    return trio_here() is not None


async def sleep(seconds: float) -> None:
    """Wait for `seconds` in a coroutine; 0 lets other tasks run."""
    await (trio_here() or _asyncio()).sleep(seconds)


async def to_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a plain function in a worker thread and return its value."""
    trio = trio_here()
    run = _asyncio().to_thread if trio is None else trio.to_thread.run_sync
    value: T = await run(function, *args)
    return value


def require_asyncio(what: str, instead: str) -> None:
    """Raise :class:`RuntimeError` in a trio task.

    `what` names the feature that needs asyncio, `instead` the alternative, both for the message.
    """
    if trio_here() is not None:
        raise RuntimeError(f"{what} requires asyncio and does not work with trio: {instead}")


class AsyncBell:
    """An event that one coroutine waits for, and that any thread can set."""

    def __init__(self) -> None:
        trio = self._trio = trio_here()
        self._new_event: Callable[[], Any]
        if trio is None:
            self._loop = _asyncio().get_running_loop()
            self._call_soon, self._new_event = self._loop.call_soon_threadsafe, _asyncio().Event
        else:
            self._call_soon = trio.lowlevel.current_trio_token().run_sync_soon
            self._new_event = trio.Event
        self._event = self._new_event()
        self._has_rung = False

    def ring(self) -> None:
        """Wake the coroutine. Raise :class:`RuntimeError` if its event loop has ended."""
        self._call_soon(self._set)

    async def wait(self, seconds: float) -> bool:
        """Wait until the bell rings, at most `seconds`; return True if it rang. May be repeated."""
        if self._trio is None:
            timer = self._loop.call_later(seconds, self._event.set)
            try:
                await self._event.wait()
            finally:
                timer.cancel()
        else:
            with self._trio.move_on_after(seconds):
                await self._event.wait()
        has_rung, self._has_rung = self._has_rung, False
        self._event = self._new_event()
        return has_rung

    def _set(self) -> None:
        self._has_rung = True
        self._event.set()


class AsyncioScope:
    """A handle by which any thread can cancel the running asyncio task, until :meth:`end`."""

    def __init__(self) -> None:
        task = _asyncio_task()
        if task is None:
            raise RuntimeError("only calls in an asyncio or trio task can be cancelled")
        self._task = task
        self._cancelling = task.cancelling()
        self._has_fired = self._is_over = False

    def cancel_soon(self) -> None:
        """Cancel the task, from any thread."""
        with suppress(RuntimeError):  # The event loop is closed.
            self._task.get_loop().call_soon_threadsafe(self._cancel)

    def end(self, error: BaseException | None) -> bool:
        """Close the scope; return True if `error` is the cancellation by this scope.

        Return False if the task has other pending cancellations.
        """
        self._is_over = True
        if not self._has_fired:
            return False
        is_alone = self._task.uncancel() <= self._cancelling
        return is_alone and isinstance(error, _asyncio().CancelledError)

    def _cancel(self) -> None:
        if not self._is_over and not self._has_fired:
            self._has_fired = True
            self._task.cancel()


class TrioScope:
    """A trio cancel scope that lasts until :meth:`end`, like an :class:`AsyncioScope`.

    It cancels by itself after `seconds`. Scopes must be nested.
    """

    def __init__(self, trio: Any, seconds: float = math.inf) -> None:
        self.task = trio.lowlevel.current_task()
        self._call_soon = trio.lowlevel.current_trio_token().run_sync_soon
        self._deadline = trio.current_time() + seconds
        self._scope = trio.CancelScope(deadline=self._deadline)
        self._scope.__enter__()

    def cancel_soon(self) -> None:
        """Cancel the code in the scope, from any thread."""
        with suppress(RuntimeError):  # The run is over.
            self._call_soon(self._scope.cancel)

    def rest(self, *, is_resting: bool) -> None:
        """Suspend the time limit of the scope if `is_resting`, else resume it."""
        self._scope.deadline = math.inf if is_resting else self._deadline

    def end(self, error: BaseException | None) -> bool:
        """Close the scope; return True if `error` is the cancellation by this scope.

        Return False if the task has other pending cancellations. If `error` is a group that
        contains the cancellation by this scope, raise the rest of the group.
        """
        if trio_here() is None:  # The garbage collector closes the coroutine, outside of its task.
            return False
        self._scope.__exit__(None if error is None else type(error), error, None)
        return bool(self._scope.cancelled_caught)


def cancel_scope() -> AsyncioScope | TrioScope:
    """Return a scope to cancel the running task. Raise :class:`RuntimeError` outside of a task."""
    trio = trio_here()
    return AsyncioScope() if trio is None else TrioScope(trio)


def _asyncio() -> Any:
    import asyncio  # Imported only if it is running already, or to raise its own error.

    return asyncio


def _asyncio_task() -> Any:
    asyncio = sys.modules.get("asyncio")
    try:
        return None if asyncio is None else asyncio.current_task()
    except (RuntimeError, AttributeError):  # No event loop; another thread is importing it.
        return None
