"""Timeouts for calls to peers that may be frozen."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")

_abandoned: set[asyncio.Future[Any]] = set()


async def wait_at_most(seconds: float, work: Awaitable[T]) -> T:
    """Return the result of `work`; raise TimeoutError after `seconds`.

    Unlike `asyncio.timeout`, this doesn't wait until the cancelled work ends.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        is_late = not task.done()
        if is_late:
            task.cancel()  # A database driver may take many seconds to end.
            _abandoned.add(task)  # The event loop keeps only weak references.
            task.add_done_callback(_discard)
    if is_late:
        raise TimeoutError(f"no response within {seconds:g} s")
    return task.result()


def _discard(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # Marks it as retrieved; the waiting caller has timed out.
