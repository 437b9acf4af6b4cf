"""Puts something around each step of a generator, and nothing around what is done between them.

What holds for a context, as a limit of time does, must not be left there between two steps: that is
the context of whoever takes them, and of all that is done in there.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractContextManager
from typing import Any

Around = AbstractContextManager[object]
Steps = Callable[[tuple[Any, ...], Mapping[str, Any]], Around]
"""A factory of the context manager around each step of a call, from the call's arguments."""


def stepwise(function: Callable[..., Any], steps: Steps, *, is_async: bool) -> Callable[..., Any]:
    """Return a generator function like `function`. For each call, `steps` returns, from its
    arguments, the context manager that is entered around every step."""
    return _async_steps(function, steps) if is_async else _steps(function, steps)


def _steps(function: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
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


def _async_steps(function: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
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
