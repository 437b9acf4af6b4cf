"""Streams whose first item is fetched early, while a retry or fallback is still possible."""

import functools
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from inspect import isawaitable, iscoroutine
from typing import Any, Self

from switchgear.decorators import is_async_generator_function
from switchgear.generator_steps import wrap_steps

StepContext = AbstractContextManager[object]
"""A reentrant context manager that is entered around each step of a stream."""


class _CallItems:
    """The common base of streams that fetch the first item of one call early.

    The call is made by `open`, or at the first step. Sent values and thrown errors are forwarded to
    the generator.
    """

    def __init__(self, call: Callable[[], Any], step_context: StepContext | None = None) -> None:
        self._call = call
        self._step_context: StepContext = nullcontext() if step_context is None else step_context
        self._items: Any = None
        self._prefetched: list[Any] = []
        """The first item, until it is delivered."""
        self._end: StopIteration | StopAsyncIteration | None = None


class PrefetchedStream(_CallItems, Iterator[Any]):
    """An iterator of the items of one call, whose first item is fetched by `open`."""

    def open(self) -> Self:
        """Make the call, and fetch the first item. Raise any error until then."""
        with self._step_context:
            self._items = _iter_items(self._call())
            try:
                self._prefetched.append(next(self._items))
            except StopIteration as end:
                self._end = end
        return self

    def send(self, given: Any) -> Any:
        if self._items is None:
            self.open()
        if self._prefetched:
            return self._prefetched.pop()
        if self._end is not None:
            raise StopIteration(*self._end.args)
        with self._step_context:
            if given is None:
                return next(self._items)
            return self._items.send(given)

    def throw(self, error: BaseException) -> Any:
        if not hasattr(self._items, "throw"):
            raise error
        with self._step_context:
            return self._items.throw(error)

    def close(self) -> None:
        if hasattr(self._items, "close"):
            self._items.close()

    def __next__(self) -> Any:
        return self.send(None)


class AsyncPrefetchedStream(_CallItems, AsyncIterator[Any]):
    """Like :class:`PrefetchedStream`, for coroutines; the call may return any kind of iterable."""

    async def open(self) -> Self:
        """Make the call, and fetch the first item. Raise any error until then."""
        with self._step_context:
            given = self._call()
            if isawaitable(given):
                given = await given
            is_async = isinstance(given, AsyncIterable)
            self._items = aiter(given) if is_async else _awaitable_items(_iter_items(given))
            try:
                self._prefetched.append(await anext(self._items))
            except StopAsyncIteration as end:
                self._end = end
        return self

    async def asend(self, given: Any) -> Any:
        if self._items is None:
            await self.open()
        if self._prefetched:
            return self._prefetched.pop()
        if self._end is not None:
            raise StopAsyncIteration
        with self._step_context:
            if given is None:
                return await anext(self._items)
            return await self._items.asend(given)

    async def athrow(self, error: BaseException) -> Any:
        if not hasattr(self._items, "athrow"):
            raise error
        with self._step_context:
            return await self._items.athrow(error)

    async def aclose(self) -> None:
        if hasattr(self._items, "aclose"):
            await self._items.aclose()

    async def __anext__(self) -> Any:
        return await self.asend(None)


def make_opener(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the generator function `function` and fetches its first item.

    It returns a stream. For an asynchronous generator function it is a coroutine function.
    """

    def open_stream(*args: Any, **kwargs: Any) -> PrefetchedStream:
        return PrefetchedStream(functools.partial(function, *args, **kwargs)).open()

    async def open_async_stream(*args: Any, **kwargs: Any) -> AsyncPrefetchedStream:
        return await AsyncPrefetchedStream(functools.partial(function, *args, **kwargs)).open()

    return open_async_stream if is_async_generator_function(function) else open_stream


def make_stream_function(
    function: Callable[..., Any], make: Callable[..., PrefetchedStream | AsyncPrefetchedStream]
) -> Callable[..., Any]:
    """Return a generator function named like `function`.

    It yields the items of the stream that `make` returns for its arguments.
    """
    is_async = is_async_generator_function(function)
    steps = wrap_steps(make, lambda _args, _kwargs: nullcontext(), is_async=is_async)
    return functools.wraps(function)(steps)


def apply_until_first_item(
    function: Callable[..., Any], decorator: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """Return the generator function `function` with `decorator` around it until its first item."""
    kind: type[Any] = (
        AsyncPrefetchedStream if is_async_generator_function(function) else PrefetchedStream
    )
    open_ = decorator(make_opener(function))
    return make_stream_function(
        function, lambda *args, **kwargs: kind(functools.partial(open_, *args, **kwargs))
    )


def _iter_items(given: Any) -> Iterator[Any]:
    """Return an iterator of the items of `given`, the result of a call.

    A string, a mapping or a value that is not iterable is the only item.
    """
    if iscoroutine(given):
        given.close()
        raise TypeError("got a coroutine, which only an asynchronous generator can await")
    if isinstance(given, AsyncIterable):
        raise TypeError("got an asynchronous stream, which only an asynchronous generator can use")
    if isinstance(given, str | bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        return iter((given,))
    return iter(given)


async def _awaitable_items(items: Iterator[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
