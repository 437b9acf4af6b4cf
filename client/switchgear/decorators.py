"""Wrappers for functions of every kind that preserve their kind and signature.

Frameworks inspect both (FastAPI generators, Celery signatures), and so do type checkers.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, suppress
from functools import partial
from types import CoroutineType
from typing import Any, NoReturn, TypeVar, cast

from switchgear import async_backend
from switchgear.refusals import Refused

Wrapper = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A function that returns the replacement of a function."""

Around = Callable[[tuple[Any, ...], Mapping[str, Any]], AbstractContextManager[object]]
"""A function of a call's arguments that returns a context manager, in which the body of the call
runs. An asynchronous generator enters the context manager by `async with` if possible."""

F = TypeVar("F", bound=Callable[..., Any])

MAX_WRAPPED = 100
"""Maximum number of `__wrapped__` functions to follow; a longer chain is a cycle."""


class NotAwaited(Refused, TypeError):
    """Raised if a plain function returned a coroutine.

    The coroutine has not begun to run. It would run later, outside of the patterns around the plain
    function.
    """


def wrap(function: F, around: Around) -> F:
    """Return `function` with its body inside the context manager that a call of `around` returns.

    The body of a coroutine function lasts from await to return, that of a generator from its first
    step to its end. Raise :class:`TypeError` for anything but a function.
    """
    return wrap_by_kind(
        function,
        plain=partial(_wrap_plain, around),
        coroutine=partial(_wrap_coroutine, around),
        generator=partial(wrap_generator, around),
        what="this decorator",
    )


def wrap_by_kind(
    function: F,
    *,
    plain: Wrapper,
    coroutine: Wrapper,
    generator: Wrapper | None,
    what: str,
) -> F:
    """Return `function` wrapped by the wrapper for its kind: plain, coroutine or generator.

    The result has the name and signature of `function`. Raise :class:`TypeError` if `function` is
    not a function, or if it is a generator function and `generator` is None. `what` names the
    decorator in the message.
    """
    given: Any = function
    if isinstance(given, classmethod | staticmethod):
        inner = wrap_by_kind(
            given.__func__, plain=plain, coroutine=coroutine, generator=generator, what=what
        )
        return cast(F, type(given)(inner))
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"only functions and methods can be decorated, not {given!r:.100}")
    is_coroutine = is_coroutine_function(given)
    if _has_kind(inspect.isgeneratorfunction, given) or is_async_generator_function(given):
        if generator is None:
            raise TypeError(
                f"{what} can't decorate a generator, whose items are used before it ends"
            )
        made = generator(given)
    elif not is_coroutine and _wraps_coroutine_function(given):
        made = _wrap_ambiguous(given, plain, coroutine)
    else:
        made = (coroutine if is_coroutine else plain)(given)
    return cast(F, functools.wraps(given)(made))


def is_coroutine_function(function: object) -> bool:
    """Return True for a coroutine function, or an object with an `async def __call__`."""
    return _has_kind(inspect.iscoroutinefunction, function)


def refuse_coroutine(given: "CoroutineType[Any, Any, Any]") -> NoReturn:
    """Close a coroutine that a plain function returned, and raise :class:`NotAwaited`."""
    name = given.__qualname__
    given.close()
    raise NotAwaited(
        f"a plain function returned the coroutine {name:.100}: decorate a coroutine function, or"
        " pass the coroutine to arun"
    )


def _wraps_coroutine_function(function: object) -> bool:
    for _ in range(MAX_WRAPPED):
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return False
        if is_coroutine_function(function):
            return True
    return False


def _wrap_ambiguous(
    function: Callable[..., Any], plain: Wrapper, coroutine: Wrapper
) -> Callable[..., Any]:
    """Wrap a plain function whose `__wrapped__` is a coroutine function.

    Such a function either returns the coroutine or runs it in an event loop of its own. In a
    running event loop it is assumed to return the coroutine, and the wrapper `coroutine` is used;
    elsewhere, the wrapper `plain`.
    """

    @functools.wraps(function)
    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    @functools.wraps(function)
    def ending(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        return refuse_coroutine(value) if type(value) is CoroutineType else value

    with suppress(TypeError, ValueError):
        ending.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    del ending.__wrapped__  # Other wrappers must take this for a plain function.
    awaited, ended = coroutine(awaiting), plain(ending)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (awaited if async_backend.is_running() else ended)(*args, **kwargs)

    return call


def is_async_generator_function(function: object) -> bool:
    return _has_kind(inspect.isasyncgenfunction, function)


def _has_kind(kind: Callable[[object], bool], function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    call = None if isinstance(function, type) else getattr(function, "__call__", None)  # noqa: B004
    return kind(function) or kind(call)


def _wrap_plain(around: Around, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with around(args, kwargs):
            return function(*args, **kwargs)

    return call


def _wrap_coroutine(around: Around, function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with around(args, kwargs):
            return await function(*args, **kwargs)

    return call


def wrap_generator(around: Around, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the generator function `function` with its body inside `around`'s context manager.

    `function` may be async. A body lasts from the first step of a generator to its end.
    """
    if is_async_generator_function(function):
        return _wrap_async_generator(around, function)

    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with around(args, kwargs):
            return (yield from function(*args, **kwargs))

    return call


def _wrap_async_generator(around: Around, function: Callable[..., Any]) -> Callable[..., Any]:
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
                except BaseException as error:  # Thrown in by the caller: pass it on.
                    step = inner.athrow(error)

    return call
