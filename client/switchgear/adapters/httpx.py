"""Transports for httpx that apply a policy to every request.

    client = httpx.Client(transport=Transport(gear.policy("core->oracle")))

Each request passes kill switch, deadline, retries, breaker and bulkhead, has timeouts within the
time left, and carries the headers of `propagation`. A breaker counts errors, 5xx, 408 and 429 as
failures when the head of the answer has arrived. Only repeatable requests are retried, see
:func:`prepare_request`; the caller gets the last answer as it is. A permit of a bulkhead is held
until the answer is closed, and the time of an attempt includes its body, without the time that the
reader takes: give streams a route with more of it.

The request is not changed: a copy is sent. With a transport, httpx ignores the proxies of the
environment, and its own `proxy` or `mounts` bypass the patterns: give proxies, certificates, limits
and HTTP/2 to the `inner` transport.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from typing import cast

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
from switchgear.patterns.time_limits import current_limit
from switchgear.patterns.timeout import CallTimeout, Timeout

__all__ = ["AsyncTransport", "Patterns", "Transport"]


class Transport(httpx.BaseTransport):
    """A transport that applies `parts`, a policy or :class:`Patterns`, around `inner`.

    `inner` is a new :class:`httpx.HTTPTransport` by default. Raise the errors of the patterns and
    of httpx.
    """

    def __init__(
        self, parts: TransportPatterns | None = None, inner: httpx.BaseTransport | None = None
    ) -> None:
        self._parts = Patterns() if parts is None else parts
        self._inner = inner or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with ExitStack() as around:
            if self._parts.guard is not None:
                around.enter_context(self._parts.guard)
            if self._parts.deadline is not None:
                around.enter_context(self._parts.deadline)
            return self._send_with_retries(request)

    def close(self) -> None:
        self._inner.close()

    def _send_with_retries(self, request: httpx.Request) -> httpx.Response:
        is_repeatable = prepare_request(request)
        retry = self._parts.retry
        call_state = None if retry is None else retry.begin()
        if retry is None or call_state is None:
            return self._send_once(request)
        call_state.repeats = is_repeatable
        call_state.enter()
        try:
            while True:
                cause = None
                try:
                    response = self._send_once(request)
                except Exception as error:
                    wait = (
                        call_state.after_error(error) if may_repeat(is_repeatable, error) else None
                    )
                    if wait is None:
                        raise
                    cause = error
                else:
                    try:
                        wait = call_state.after_response(response) if is_repeatable else None
                    except BaseException:
                        response.close()
                        raise
                    if wait is None:
                        return response
                    _drain(response)
                retry.wait(wait, cause)
        finally:
            cause = None  # It refers to this frame.
            call_state.leave()

    def _send_once(self, request: httpx.Request) -> httpx.Response:
        bulkhead = self._parts.bulkhead
        admitted = BreakerPermit(self._parts.breaker)
        held = ExitStack()
        place = None
        try:
            if bulkhead is not None:
                place = held.enter_context(bulkhead.of())
            response = self._send(request, held)
            if place is not None:
                place.record_outcome(response)
            if response.is_closed:  # The body was read already, for instance from a cache.
                held.close()
        except BaseException as error:
            if place is not None:
                place.record_outcome(error)
            held.close()
            admitted.record_error(error)
            raise
        admitted.record_status(response.status_code)
        return response

    def _send(self, request: httpx.Request, held: ExitStack) -> httpx.Response:
        with Timeout(self._parts.route_timeout(request.url.path)):
            sent, limit = make_attempt(request, self._parts.http), current_limit()
            response = self._inner.handle_request(sent)
        response.request = request  # For `raise_for_status`.
        stream = cast(httpx.SyncByteStream, response.stream)
        response.stream = _Stream(stream, sent, BodyTimer(limit), held)
        return response


class AsyncTransport(httpx.AsyncBaseTransport):
    """A :class:`Transport` for :class:`httpx.AsyncClient`; its timeouts cancel."""

    def __init__(
        self, parts: TransportPatterns | None = None, inner: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._parts = Patterns() if parts is None else parts
        self._inner = inner or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        async with AsyncExitStack() as around:
            if self._parts.guard is not None:
                await around.enter_async_context(self._parts.guard)
            if self._parts.deadline is not None:
                await around.enter_async_context(self._parts.deadline)
            return await self._send_with_retries(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _send_with_retries(self, request: httpx.Request) -> httpx.Response:
        is_repeatable = prepare_request(request)
        retry = self._parts.retry
        call_state = None if retry is None else retry.begin()
        if retry is None or call_state is None:
            return await self._send_once(request)
        call_state.repeats = is_repeatable
        call_state.enter()
        try:
            while True:
                cause = None
                try:
                    response = await self._send_once(request)
                except Exception as error:
                    wait = (
                        call_state.after_error(error) if may_repeat(is_repeatable, error) else None
                    )
                    if wait is None:
                        raise
                    cause = error
                else:
                    try:
                        wait = call_state.after_response(response) if is_repeatable else None
                    except BaseException:
                        await response.aclose()
                        raise
                    if wait is None:
                        return response
                    await _adrain(response)
                await retry.wait_async(wait, cause)
        finally:
            cause = None  # It refers to this frame.
            call_state.leave()

    async def _send_once(self, request: httpx.Request) -> httpx.Response:
        bulkhead = self._parts.bulkhead
        admitted = BreakerPermit(self._parts.breaker)
        held = AsyncExitStack()
        place = None
        try:
            if bulkhead is not None:
                place = await held.enter_async_context(bulkhead.of())
            response = await self._send(request, held)
            if place is not None:
                place.record_outcome(response)
            if response.is_closed:
                await held.aclose()
        except BaseException as error:
            if place is not None:
                place.record_outcome(error)
            await held.aclose()
            admitted.record_error(error)
            raise
        admitted.record_status(response.status_code)
        return response

    async def _send(self, request: httpx.Request, held: AsyncExitStack) -> httpx.Response:
        try:
            async with Timeout(self._parts.route_timeout(request.url.path)):
                sent, limit = make_attempt(request, self._parts.http), current_limit()
                response = await self._inner.handle_async_request(sent)
        except CallTimeout as late:  # Users of httpx look for its own.
            raise httpx.ReadTimeout(str(late), request=request) from late
        response.request = request  # For `raise_for_status`.
        stream = cast(httpx.AsyncByteStream, response.stream)
        response.stream = _AsyncStream(stream, sent, BodyTimer(limit), held)
        return response


class _Stream(httpx.SyncByteStream):
    """The body of an answer to `sent`, within the time of the attempt."""

    def __init__(
        self,
        inner: httpx.SyncByteStream,
        sent: httpx.Request,
        patience: BodyTimer,
        held: ExitStack,
    ) -> None:
        self._inner = inner
        self._sent = sent
        self._timer = patience
        self._held = held

    def __iter__(self) -> Iterator[bytes]:
        self._timer.begin()
        for chunk in self._inner:
            if self._timer.is_over():
                raise _timeout_error(self._sent)
            yield chunk
            self._timer.begin()

    def drain(self) -> None:
        """Read the bytes that arrive at once, undecoded."""
        limit_drain(self._sent)
        self._timer.shorten(MAX_DRAIN_SECONDS)
        size = 0
        for chunk in self:
            size += len(chunk)
            if size > MAX_DRAIN_BYTES:
                return

    def close(self) -> None:
        with self._held:
            self._inner.close()


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(
        self,
        inner: httpx.AsyncByteStream,
        sent: httpx.Request,
        patience: BodyTimer,
        held: AsyncExitStack,
    ) -> None:
        self._inner = inner
        self._sent = sent
        self._timer = patience
        self._held = held

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._timer.begin()
        async for chunk in self._inner:
            if self._timer.is_over():
                raise _timeout_error(self._sent)
            yield chunk
            self._timer.begin()

    async def adrain(self) -> None:
        limit_drain(self._sent)
        self._timer.shorten(MAX_DRAIN_SECONDS)
        size = 0
        async for chunk in self:
            size += len(chunk)
            if size > MAX_DRAIN_BYTES:
                return

    async def aclose(self) -> None:
        async with self._held:
            await self._inner.aclose()


def _timeout_error(request: httpx.Request) -> httpx.ReadTimeout:
    return httpx.ReadTimeout("the answer did not end in time", request=request)


def _drain(response: httpx.Response) -> None:
    """Discard an answer, and return its connection to the pool if that is cheap. Never raises."""
    with suppress(Exception):
        try:
            if should_drain(response):
                cast(_Stream, response.stream).drain()
        finally:
            response.close()


async def _adrain(response: httpx.Response) -> None:
    with suppress(Exception):
        try:
            if should_drain(response):
                await cast(_AsyncStream, response.stream).adrain()
        finally:
            await response.aclose()
