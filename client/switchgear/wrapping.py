"""Puts something around every call of a function, and leaves it of the kind that it is.

Frameworks look at the kind (FastAPI at generators, Celery at signatures), type checkers too.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    suppress,
)
from types import CoroutineType
from typing import Any, NoReturn, TypeVar, cast

from switchgear import async_backend
from switchgear.refusals import Refused

Make = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives what is called in the place of a function."""

Around = Callable[[tuple[Any, ...], Mapping[str, Any]], AbstractContextManager[object]]
"""Gives, for the arguments of a call, what is entered before its body runs and left after it. If it
can be entered by `async with` as well, an asynchronous generator does that."""

F = TypeVar("F", bound=Callable[..., Any])

MAX_WRAPPED = 100
"""So many functions are looked through; more are a ring."""


class NotAwaited(Refused, TypeError):
    """A plain function gave a coroutine: nothing of it has run yet, and when it does, nothing that
    was put around the function is there any more."""


def wrapped(function: F, around: Around) -> F:
    """`function` with `around` around its body: a coroutine's when it is awaited, a generator's
    from its first step to its end. Raises :class:`TypeError` for what is no function."""
    given: Any = function
    if isinstance(given, classmethod | staticmethod):
        return cast(F, type(given)(wrapped(given.__func__, around)))
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"only functions and methods can be decorated, not {given!r:.100}")
    if is_coroutine_function(given):
        made = _of_coroutine(around)(given)
    elif _is(inspect.isgeneratorfunction, given):
        made = _generator(given, around)
    elif _is(inspect.isasyncgenfunction, given):
        made = _async_generator(given, around)
    else:
        plain, coroutine = _of_plain(around), _of_coroutine(around)
        made = _of_either(given, plain, coroutine) if _may_await(given) else plain(given)
    return cast(F, made)


def by_kind(
    function: F,
    *,
    plain: Make,
    coroutine: Make,
    stream: Around | None,
    what: str,
    generator: Make | None = None,
) -> F:
    """What `plain` or `coroutine` makes of `function`, by its kind, under its name and with its
    signature. A generator has `stream` around its body, or is what `generator` makes of it;
    without either it can't be decorated with `what`. Raises :class:`TypeError` for that, and for
    what is no function."""
    given: Any = function
    if isinstance(given, classmethod | staticmethod):
        inner = by_kind(
            given.__func__,
            plain=plain,
            coroutine=coroutine,
            stream=stream,
            what=what,
            generator=generator,
        )
        return cast(F, type(given)(inner))
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"only functions and methods can be decorated, not {given!r:.100}")
    if _is(inspect.isgeneratorfunction, given) or _is(inspect.isasyncgenfunction, given):
        if generator is not None:
            return cast(F, functools.wraps(given)(generator(given)))
        if stream is None:
            raise TypeError(f"{what} can't be put around a generator, which gives as it goes")
        return wrapped(function, stream)
    is_coroutine = is_coroutine_function(given)
    if not is_coroutine and _may_await(given):
        return cast(F, _of_either(given, plain, coroutine))
    return cast(F, functools.wraps(given)((coroutine if is_coroutine else plain)(given)))


def is_coroutine_function(function: object) -> bool:
    """Whether to call this gives a coroutine, also of an object with an `async def __call__`."""
    return _is(inspect.iscoroutinefunction, function)


def in_event_loop() -> bool:
    """Return True if an event loop runs in this thread, of asyncio or of trio."""
    return async_backend.is_running()


def refuse_coroutine(given: "CoroutineType[Any, Any, Any]") -> NoReturn:
    """For what is put around a plain function: raises :class:`NotAwaited`."""
    name = given.__qualname__
    given.close()
    raise NotAwaited(
        f"a plain function gave the coroutine {name:.100}: decorate a coroutine function, one"
        " that awaits it, or give it to arun"
    )


def _may_await(function: object) -> bool:
    """Whether this plain function is around a coroutine function."""
    for _ in range(MAX_WRAPPED):
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return False
        if is_coroutine_function(function):
            return True
    return False


def _of_either(function: Callable[..., Any], plain: Make, coroutine: Make) -> Callable[..., Any]:
    """What is around a coroutine function either hands its coroutine on, or runs it to its end in
    an event loop of its own. None can be told from the other, but only the first is of use where
    a loop runs, and only the second where none does."""

    @functools.wraps(function)
    async def awaiting(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs)

    @functools.wraps(function)
    def ending(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        return refuse_coroutine(value) if type(value) is CoroutineType else value

    with suppress(TypeError, ValueError):
        ending.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    del ending.__wrapped__  # For layers below, this is a plain function and nothing else.
    awaited, ended = coroutine(awaiting), plain(ending)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (awaited if in_event_loop() else ended)(*args, **kwargs)

    return call


def is_async_generator_function(function: object) -> bool:
    """Whether to call this gives an asynchronous generator."""
    return _is(inspect.isasyncgenfunction, function)


def _is(kind: Callable[[object], bool], function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    call = None if isinstance(function, type) else getattr(function, "__call__", None)  # noqa: B004
    return kind(function) or kind(call)


def _of_plain(around: Around) -> Make:
    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with around(args, kwargs):
                return function(*args, **kwargs)

        return call

    return make


def _of_coroutine(around: Around) -> Make:
    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def call(*args: Any, **kwargs: Any) -> Any:
            with around(args, kwargs):
                return await function(*args, **kwargs)

        return call

    return make


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
