"""Transports for httpx that apply a policy to every request.

    client = httpx.Client(transport=Transport(gear.policy("core->oracle")))

Each request passes kill switch, deadline, retries, breaker and bulkhead, has timeouts within the
time left, and carries headers with that time and the retry attempt. A permit of a bulkhead is held
until the response is closed.

A breaker records the outcome when the response headers arrive or an error is raised; errors and the
statuses 5xx, 408 and 429 are failures. Only repeatable requests are retried, see
:func:`prepare_request`; the caller gets the last response unchanged.

The timeout of an attempt includes the reads of the response body, but not the caller's time between
reads. For paths that stream, set a longer timeout with a route of the policy.

The request object is not changed, since a copy is sent. With a transport, httpx ignores the proxies
of the environment. Requests through httpx's own `proxy` or `mounts` bypass this transport and so
the policy. Configure proxies, certificates, limits and HTTP/2 in the `inner` transport.
"""

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from functools import partial
from typing import Any, cast

import httpx

from switchgear.adapters.http_requests import (
    MAX_DRAIN_BYTES,
    MAX_DRAIN_SECONDS,
    BodyTimer,
    BreakerPermit,
    Patterns,
    TransportPatterns,
    limit_drain,
    make_attempt,
    may_repeat,
    prepare_request,
    should_drain,
)
from switchgear.generator_steps import drive, drive_async
from switchgear.patterns.retry import Retry
from switchgear.patterns.time_limits import current_limit
from switchgear.patterns.timeout import CallTimeout, Timeout

Steps = Generator[Callable[[], Any], Any, httpx.Response]
"""A generator that yields functions to call or await, and returns the response."""

__all__ = ["AsyncTransport", "Patterns", "Transport"]


class _PatternSteps:
    """The steps of a request through its patterns, shared by the sync and the async transport.

    A subclass sends requests by `_send`, and closes or discards responses; its methods may be
    coroutine functions.
    """

    _parts: TransportPatterns
    _send: Callable[[httpx.Request, Any], Any]
    _close_response: Callable[[httpx.Response], Any]
    _discard_response: Callable[[httpx.Response], Any]
    _enter: Callable[[Any, Any], Any]
    _leave: Callable[[Any], Any]
    _new_stack: type[ExitStack] | type[AsyncExitStack]
    _wait: Callable[[Retry, float, BaseException | None], Any]

    def _send_with_retries(self, request: httpx.Request) -> Steps:
        is_repeatable = prepare_request(request)
        retry = self._parts.retry
        call_state = None if retry is None else retry.begin()
        if retry is None or call_state is None:
            return (yield from self._send_once(request))
        call_state.repeats = is_repeatable
        call_state.enter()
        try:
            while True:
                cause = None
                try:
                    response = yield from self._send_once(request)
                except Exception as error:
                    repeats = may_repeat(is_repeatable, error)
                    wait = call_state.after_error(error) if repeats else None
                    if wait is None:
                        raise
                    cause = error
                else:
                    try:
                        wait = call_state.after_response(response) if is_repeatable else None
                    except BaseException:
                        yield partial(self._close_response, response)
                        raise
                    if wait is None:
                        return response
                    yield partial(self._discard_response, response)
                yield partial(self._wait, retry, wait, cause)
        finally:
            cause = None  # Breaks a reference cycle: the error refers to this frame.
            call_state.leave()

    def _send_once(self, request: httpx.Request) -> Steps:
        bulkhead = self._parts.bulkhead
        admitted = BreakerPermit(self._parts.breaker)
        held = self._new_stack()
        permit = None
        try:
            if bulkhead is not None:
                permit = yield partial(self._enter, held, bulkhead.of())
            response: httpx.Response = yield partial(self._send, request, held)
            if permit is not None:
                permit.record_outcome(response)
            if response.is_closed:  # The body was read already, for instance from a cache.
                yield partial(self._leave, held)
        except BaseException as error:
            if permit is not None:
                permit.record_outcome(error)
            yield partial(self._leave, held)
            admitted.record_error(error)
            raise
        admitted.record_status(response.status_code)
        return response


class Transport(_PatternSteps, httpx.BaseTransport):
    """A transport that applies `parts`, a policy or :class:`Patterns`, to requests through `inner`.

    `inner` is a new :class:`httpx.HTTPTransport` by default. Requests raise the errors of the
    patterns and of httpx.
    """

    _new_stack = ExitStack
    _enter = staticmethod(ExitStack.enter_context)
    _leave = staticmethod(ExitStack.close)
    _close_response = staticmethod(httpx.Response.close)
    _wait = staticmethod(Retry.wait)

    def __init__(
        self, parts: TransportPatterns | None = None, inner: httpx.BaseTransport | None = None
    ) -> None:
        self._parts = Patterns() if parts is None else parts
        self._inner = inner or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with ExitStack() as around:
            for pattern in (self._parts.guard, self._parts.deadline):
                if pattern is not None:
                    around.enter_context(pattern)
            return drive(self._send_with_retries(request))

    def close(self) -> None:
        self._inner.close()

    def _discard_response(self, response: httpx.Response) -> None:
        """Close the response. Never raises.

        If the rest of the body is short, read it first, so that the connection can be used again.
        """
        with suppress(Exception):
            try:
                if should_drain(response):
                    cast(_Stream, response.stream).drain()
            finally:
                response.close()

    def _send(self, request: httpx.Request, held: ExitStack) -> httpx.Response:
        with Timeout(self._parts.route_timeout(request.url.path)):
            sent, limit = make_attempt(request, self._parts.http), current_limit()
            response = self._inner.handle_request(sent)
        response.request = request  # For `raise_for_status`.
        response.stream = _Stream(response.stream, sent, BodyTimer(limit), held)
        return response


class AsyncTransport(_PatternSteps, httpx.AsyncBaseTransport):
    """A :class:`Transport` for :class:`httpx.AsyncClient`, whose timeouts cancel the request."""

    _new_stack = AsyncExitStack
    _enter = staticmethod(AsyncExitStack.enter_async_context)
    _leave = staticmethod(AsyncExitStack.aclose)
    _close_response = staticmethod(httpx.Response.aclose)
    _wait = staticmethod(Retry.wait_async)

    def __init__(
        self, parts: TransportPatterns | None = None, inner: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._parts = Patterns() if parts is None else parts
        self._inner = inner or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        async with AsyncExitStack() as around:
            for pattern in (self._parts.guard, self._parts.deadline):
                if pattern is not None:
                    await around.enter_async_context(pattern)
            return await drive_async(self._send_with_retries(request))

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _discard_response(self, response: httpx.Response) -> None:
        with suppress(Exception):
            try:
                if should_drain(response):
                    await cast(_AsyncStream, response.stream).adrain()
            finally:
                await response.aclose()

    async def _send(self, request: httpx.Request, held: AsyncExitStack) -> httpx.Response:
        try:
            async with Timeout(self._parts.route_timeout(request.url.path)):
                sent, limit = make_attempt(request, self._parts.http), current_limit()
                response = await self._inner.handle_async_request(sent)
        except CallTimeout as late:  # Callers expect httpx's own timeout error.
            raise httpx.ReadTimeout(str(late), request=request) from late
        response.request = request  # For `raise_for_status`.
        response.stream = _AsyncStream(response.stream, sent, BodyTimer(limit), held)
        return response


class _TimedBody:
    def __init__(self, inner: Any, sent: httpx.Request, timer: BodyTimer, held: Any) -> None:
        self._inner, self._sent, self._timer, self._held = inner, sent, timer, held

    def _check_time(self) -> None:
        if self._timer.is_over():
            raise httpx.ReadTimeout("the response was not complete in time", request=self._sent)

    def _begin_drain(self) -> None:
        limit_drain(self._sent)
        self._timer.shorten(MAX_DRAIN_SECONDS)


class _Stream(_TimedBody, httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        self._timer.begin()
        for chunk in self._inner:
            self._check_time()
            yield chunk
            self._timer.begin()

    def drain(self) -> None:
        """Read and discard the rest of the body, undecoded, within `MAX_DRAIN_SECONDS`."""
        self._begin_drain()
        size = 0
        for chunk in self:
            size += len(chunk)
            if size > MAX_DRAIN_BYTES:
                return

    def close(self) -> None:
        with self._held:
            self._inner.close()


class _AsyncStream(_TimedBody, httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._timer.begin()
        async for chunk in self._inner:
            self._check_time()
            yield chunk
            self._timer.begin()

    async def adrain(self) -> None:
        self._begin_drain()
        size = 0
        async for chunk in self:
            size += len(chunk)
            if size > MAX_DRAIN_BYTES:
                return

    async def aclose(self) -> None:
        async with self._held:
            await self._inner.aclose()
