"""One course of a job for both worlds: it asks for calls, and is told what came of them."""

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from switchgear.async_backend import require_asyncio
from switchgear.decorators import in_event_loop, is_coroutine_function
from switchgear.lazy import asyncio
from switchgear.steps.records import Lease

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Call this, plain or a coroutine function. It writes under the `lease`, which is lost when the
    call is cancelled."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    lease: Lease | None = None


Course = Generator[Ask, Any, T]


def drive(course: Course[T]) -> T:
    """In this thread; coroutines in an event loop of their own. Raises :class:`RuntimeError` within
    an event loop, which would stand still."""
    if in_event_loop():
        raise RuntimeError("jobs can't be run within an event loop: await arun() and its like")
    try:
        ask = next(course)
        while True:
            try:
                answer = call(ask.function, *ask.args)
            except BaseException as error:  # For the course to judge.
                ask = course.throw(error)
            else:
                ask = course.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def drive_async(course: Course[T]) -> T:
    """Call in this event loop; plain functions run in a thread, since they may wait for disks and
    networks. Raises :class:`RuntimeError` under trio."""
    require_asyncio("a job", "run it by trio.to_thread.run_sync(runner.run, job_id)")
    try:
        ask = next(course)
        while True:
            try:
                answer = await _answer(ask)
            except BaseException as error:
                ask = course.throw(error)
            else:
                ask = course.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


def call(function: Callable[..., Any], *args: Any) -> Any:
    """What it gives, awaited if need be. Raises :class:`RuntimeError` for a coroutine function
    where an event loop runs."""
    if not is_coroutine_function(function):
        return function(*args)
    if in_event_loop():
        raise RuntimeError("there is an event loop: await the method whose name begins with an a")

    async def awaited() -> Any:
        return await function(*args)

    return asyncio.run(awaited())


async def call_async(function: Callable[..., Any], *args: Any) -> Any:
    """What it gives; in a thread unless it is a coroutine function."""
    if is_coroutine_function(function):
        return await function(*args)
    given = await asyncio.to_thread(function, *args)
    return await given if inspect.isawaitable(given) else given


async def _answer(ask: Ask) -> Any:
    """A thread can't be cancelled: it is waited for, until it ends or writes under its lease."""
    if is_coroutine_function(ask.function):
        return await ask.function(*ask.args)
    doing = asyncio.ensure_future(call_async(ask.function, *ask.args))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        if ask.lease is not None:
            ask.lease.is_lost = True
        await asyncio.wait([doing])
        if not doing.cancelled():
            doing.exception()  # Looked at, so that nobody complains.
        raise
