"""Drivers that run a job in a thread or in an event loop.

An execution is a generator that yields call requests and is sent their results.
"""

import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from switchgear.async_backend import is_running, require_asyncio
from switchgear.decorators import is_coroutine_function
from switchgear.generator_steps import run_effects, run_effects_async
from switchgear.lazy import asyncio
from switchgear.steps.records import Lease

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A function call that the execution of a job requests; a coroutine function is awaited.

    The function writes to the store under `lease`, the worker's right to write to the job. If the
    call is cancelled, the lease is marked as lost.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    lease: Lease | None = None


Execution = Generator[CallRequest, Any, T]


def drive(execution: Execution[T]) -> T:
    """Run the execution of a job in this thread; coroutines run in a new event loop.

    Raises :class:`RuntimeError` within an event loop, which it would block.
    """
    if is_running():
        raise RuntimeError(
            "jobs can't run inside an event loop: await arun() and the other async methods"
        )
    return run_effects(execution, lambda request: call(request.function, *request.args))


async def drive_async(execution: Execution[T]) -> T:
    """Run the execution of a job in this event loop.

    Plain functions run in a thread, since they may block. Raises :class:`RuntimeError` under trio.
    """
    require_asyncio("a job", "run it by trio.to_thread.run_sync(runner.run, job_id)")
    return await run_effects_async(execution, _perform_call)


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of `function`; a coroutine function runs in a new event loop.

    Raises :class:`RuntimeError` for a coroutine function within an event loop.
    """
    if not is_coroutine_function(function):
        return function(*args)
    if is_running():
        raise RuntimeError(
            "an event loop is running: await the async method, whose name begins with a"
        )

    async def run_function() -> Any:
        return await function(*args)

    return asyncio.run(run_function())


async def call_async(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of `function`; if it is no coroutine function, it runs in a thread."""
    if is_coroutine_function(function):
        return await function(*args)
    result = await asyncio.to_thread(function, *args)
    return await result if inspect.isawaitable(result) else result


async def _perform_call(request: CallRequest) -> Any:
    """Perform the requested call. When cancelled, wait for its thread, which can't be cancelled.

    Meanwhile the lease is marked as lost, so that the function ends at its next write.
    """
    if is_coroutine_function(request.function):
        return await request.function(*request.args)
    future = asyncio.ensure_future(call_async(request.function, *request.args))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if request.lease is not None:
            request.lease.is_lost = True
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()  # Retrieved, so that asyncio does not log it.
        raise
