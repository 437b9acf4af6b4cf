"""Blocks in which patterns skip their back-offs and queues."""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

from switchgear import cancellation
from switchgear.decorators import wrap

F = TypeVar("F", bound=Callable[..., Any])


def no_wait() -> "NoWait":
    """Return a context manager and decorator within which no pattern waits, in the whole process.

    Back-offs, `Retry-After` and the pauses of consumers are skipped, and a call that finds a
    bulkhead full is rejected at once. Attempts are counted and jitter is drawn as usual, and no
    time passes for deadlines, budgets and breakers. A `sleep=` of your own, such as
    :meth:`FakeClock.sleep`, is still called. Waits that began earlier continue. Blocks may be
    nested, and may overlap in threads.
    """
    return NoWait()


class NoWait:
    """The result of :func:`no_wait`; may be entered any number of times."""

    def __enter__(self) -> Self:
        _no_wait_blocks.count(1)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        _no_wait_blocks.count(-1)

    def __call__(self, function: F) -> F:
        """Return `function`, such as a test or a fixture, which runs without waiting."""
        return wrap(function, self._around)

    def _around(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> AbstractContextManager[object]:
        return self


class _NoWaitBlocks:
    """The number of blocks entered in this process."""

    def __init__(self) -> None:
        self._entered = 0
        self._lock = threading.RLock()

    def count(self, step: int) -> None:
        with self._lock:
            self._entered += step
            cancellation.is_waiting_skipped = self._entered > 0

    def after_fork(self) -> None:
        self._lock = threading.RLock()


_no_wait_blocks = _NoWaitBlocks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_no_wait_blocks.after_fork)
