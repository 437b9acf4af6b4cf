"""Puts something around every call of a function, and leaves it of the kind that it is.

Frameworks look at the kind (FastAPI at generators, Celery at signatures), type checkers too.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from typing import Any, TypeVar, cast

Make = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives what is called in the place of a function."""

Around = Callable[[tuple[Any, ...], Mapping[str, Any]], AbstractContextManager[object]]
"""Gives, for the arguments of a call, what is entered before its body runs and left after it. If it
can be entered by `async with` as well, an asynchronous generator does that."""

F = TypeVar("F", bound=Callable[..., Any])


def wrapped(function: F, around: Around) -> F:
    """`function` with `around` around its body: a coroutine's when it is awaited, a generator's
    from its first step to its end. Raises :class:`TypeError` for what is no function."""
    given: Any = function
    if isinstance(given, classmethod | staticmethod):
        return cast(F, type(given)(wrapped(given.__func__, around)))
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"only functions and methods can be decorated, not {given!r:.100}")
    if is_coroutine_function(given):
        made = _coroutine(given, around)
    elif _is(inspect.isgeneratorfunction, given):
        made = _generator(given, around)
    elif _is(inspect.isasyncgenfunction, given):
        made = _async_generator(given, around)
    else:
        made = _function(given, around)
    return cast(F, made)


def by_kind(function: F, *, plain: Make, coroutine: Make, stream: Around | None, what: str) -> F:
    """What `plain` or `coroutine` makes of `function`, by its kind, under its name and with its
    signature. A generator has `stream` around its body; without one it can't be decorated with
    `what`. Raises :class:`TypeError` for that, and for what is no function."""
    given: Any = function
    if isinstance(given, classmethod | staticmethod):
        inner = by_kind(given.__func__, plain=plain, coroutine=coroutine, stream=stream, what=what)
        return cast(F, type(given)(inner))
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"only functions and methods can be decorated, not {given!r:.100}")
    if _is(inspect.isgeneratorfunction, given) or _is(inspect.isasyncgenfunction, given):
        if stream is None:
            raise TypeError(f"{what} can't be put around a generator, which gives as it goes")
        return wrapped(function, stream)
    make = coroutine if is_coroutine_function(given) else plain
    return cast(F, functools.wraps(given)(make(given)))


def is_coroutine_function(function: object) -> bool:
    """Whether to call this gives a coroutine, also of an object with an `async def __call__`."""
    return _is(inspect.iscoroutinefunction, function)


def _is(kind: Callable[[object], bool], function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    call = None if isinstance(function, type) else getattr(function, "__call__", None)  # noqa: B004
    return kind(function) or kind(call)


def _function(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with around(args, kwargs):
            return function(*args, **kwargs)

    return call


def _coroutine(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with around(args, kwargs):
            return await function(*args, **kwargs)

    return call


def _generator(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with around(args, kwargs):
            return (yield from function(*args, **kwargs))

    return call


def _async_generator(function: Callable[..., Any], around: Around) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        async with AsyncExitStack() as stack:
            entered = around(args, kwargs)
            if isinstance(entered, AbstractAsyncContextManager):
                await stack.enter_async_context(entered)
            else:
                stack.enter_context(entered)
            inner = function(*args, **kwargs)
            step = inner.__anext__()
            while True:
                try:
                    value = await step
                except StopAsyncIteration:
                    return
                try:
                    step = inner.asend((yield value))
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:  # What was thrown in is for the inner one.
                    step = inner.athrow(error)

    return call
