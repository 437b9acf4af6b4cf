"""Functions that run a generator step by step, or enter a context manager around each step.

A context variable, such as a time limit, must not stay set between two steps, since the caller of
the generator runs in the same context.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager
from inspect import isawaitable, iscoroutine
from typing import Any, TypeVar

T = TypeVar("T")
StepManager = AbstractContextManager[object]
StepManagerFactory = Callable[[tuple[Any, ...], Mapping[str, Any]], StepManager]
"""A function of a call's arguments that returns a context manager, entered around each step."""


def wrap_steps(
    function: Callable[..., Any], steps: StepManagerFactory, *, is_async: bool
) -> Callable[..., Any]:
    """Return a generator function like `function` that runs each step inside a context manager.

    The managers come from `steps`.
    """
    return _async_steps(function, steps) if is_async else _steps(function, steps)


def _steps(function: Callable[..., Any], steps: StepManagerFactory) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner, step = function(*args, **kwargs), steps(args, kwargs)
        act, given = inner.send, None
        try:
            while True:
                with step:
                    try:
                        value = act(given)
                    except StopIteration as end:
                        return end.value
                try:
                    given, act = (yield value), inner.send
                except GeneratorExit:
                    raise
                except BaseException as error:  # Thrown in by the caller: pass it on.
                    given, act = error, inner.throw
        finally:
            inner.close()

    return call


def _async_steps(function: Callable[..., Any], steps: StepManagerFactory) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner, step = function(*args, **kwargs), steps(args, kwargs)
        act, given = inner.asend, None
        try:
            while True:
                with step:
                    try:
                        value = await act(given)
                    except StopAsyncIteration:
                        return
                try:
                    given, act = (yield value), inner.asend
                except GeneratorExit:
                    raise
                except BaseException as error:
                    given, act = error, inner.athrow
        finally:
            await inner.aclose()

    return call


def run_effects(steps: Generator[Any, Any, T], perform: Callable[[Any], Any]) -> T:
    """Run the generator `steps` and return its value.

    Call `perform` with each effect that the generator yields, and send it the result or throw the
    error into it.
    """
    try:
        effect = next(steps)
        while True:
            resume, value = steps.send, None
            try:
                value = perform(effect)
            except BaseException as error:
                resume, value = steps.throw, error
            effect = resume(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def run_effects_async(
    steps: Generator[Any, Any, T], perform: Callable[[Any], Awaitable[Any]]
) -> T:
    """Like :func:`run_effects`, awaiting `perform`."""
    try:
        effect = next(steps)
        while True:
            resume, value = steps.send, None
            try:
                value = await perform(effect)
            except BaseException as error:
                resume, value = steps.throw, error
            effect = resume(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def drive(steps: Generator[Callable[[], Any], Any, T]) -> T:
    """Run `steps`, a generator that yields functions to call, and return its value."""
    return run_effects(steps, _call_plain)


async def drive_async(steps: Generator[Callable[[], Any], Any, T]) -> T:
    """Like :func:`drive`, in a coroutine: await the results that are awaitable."""
    return await run_effects_async(steps, _call_async)


def _call_plain(function: Callable[[], Any]) -> Any:
    value = function()
    if iscoroutine(value):
        value.close()
        raise TypeError("got a coroutine, which only a coroutine function can await")
    return value


async def _call_async(function: Callable[[], Any]) -> Any:
    value = function()
    return await value if isawaitable(value) else value
