"""Waiting for a peer that may be frozen, without ever being held by it."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")

_abandoned: set[asyncio.Future[Any]] = set()


async def within(seconds: float, work: Awaitable[T]) -> T:
    """The outcome of `work`, or TimeoutError after `seconds`.

    Unlike `asyncio.timeout`, late work is cancelled but not waited for: a driver that ends a
    statement politely can take many seconds over it when the server is frozen.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        late = not task.done()
        if late:
            task.cancel()
            _abandoned.add(task)  # The loop itself keeps only weak references.
            task.add_done_callback(_forget)
    if late:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return task.result()


def _forget(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # Marks it as retrieved; the waiting caller has timed out.
