"""Functions that run a generator step by step, or enter a context manager around each step.

A context variable, such as a time limit, must not stay set between two steps, since the caller of
the generator runs in the same context.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
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
    """Return a generator function like `function` that enters a manager around every step."""
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
                except BaseException as error:  # What was thrown in is for the inner one.
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


def drive(steps: Generator[Callable[[], Any], Any, T]) -> T:
    """Run the generator `steps` and return its value.

    Call each function that it yields, and send it the result or throw the error into it.
    """
    try:
        call = next(steps)
        while True:
            try:
                value = _not_awaitable(call())
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def drive_async(steps: Generator[Callable[[], Any], Any, T]) -> T:
    """Like :func:`drive`, in a coroutine: await the results that are awaitable."""
    try:
        call = next(steps)
        while True:
            try:
                value = call()
                if isawaitable(value):
                    value = await value
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _not_awaitable(value: Any) -> Any:
    if iscoroutine(value):
        value.close()
        raise TypeError("got a coroutine, which only a coroutine function could await")
    return value
