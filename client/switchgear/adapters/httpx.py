"""Transports for httpx: every request of a client gets the patterns around it.

    client = httpx.Client(transport=Transport(gear.policy("core->oracle")))

Around each request: kill switch, deadline, retries, breaker, bulkhead, timeouts within what is
left, and the headers of `propagation`. A breaker counts errors, 5xx, 408 and 429 as failures, when
the head of the answer has come. Retries are for what may be sent again, see :func:`prepare`; in the
end the caller gets the last answer as it is. A place in a bulkhead is held until the answer is
closed, and one try's time is for its body too, without what its reader takes: give streams a route
with more of it.

The request itself stays as it is: what goes over the wire is a copy. An httpx client that is given
a transport leaves the proxies of the environment aside, and its own `proxy` or `mounts` go around
the patterns: give proxies, certificates, limits and HTTP/2 to the `inner` transport.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from typing import cast

import httpx

from switchgear.adapters.requesting import (
    DRAINED_SECONDS,
    MAX_DRAINED,
    Admission,
    Parts,
    Patience,
    Patterns,
    dressed,
    hurry,
    is_worth_draining,
    may_repeat,
    prepare,
)
from switchgear.patterns.time_limits import current_limit
from switchgear.patterns.timeout import CallTimeout, Timeout

__all__ = ["AsyncTransport", "Patterns", "Transport"]


class Transport(httpx.BaseTransport):
    """Puts `parts`, a policy or :class:`Patterns`, around `inner`, by default a new
    :class:`httpx.HTTPTransport`. Raises what the patterns raise, and httpx's errors."""

    def __init__(
        self, parts: Parts | None = None, inner: httpx.BaseTransport | None = None
    ) -> None:
        self._parts = Patterns() if parts is None else parts
        self._inner = inner or httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with ExitStack() as around:
            if self._parts.guard is not None:
                around.enter_context(self._parts.guard)
            if self._parts.deadline is not None:
                around.enter_context(self._parts.deadline)
            return self._tried(request)

    def close(self) -> None:
        self._inner.close()

    def _tried(self, request: httpx.Request) -> httpx.Response:
        is_repeatable = prepare(request)
        retry = self._parts.retry
        call_state = None if retry is None else retry.begin()
        if retry is None or call_state is None:
            return self._once(request)
        call_state.repeats = is_repeatable
        call_state.enter()
        try:
            while True:
                cause = None
                try:
                    response = self._once(request)
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

    def _once(self, request: httpx.Request) -> httpx.Response:
        bulkhead = self._parts.bulkhead
        admitted = Admission(self._parts.breaker)
        held = ExitStack()
        place = None
        try:
            if bulkhead is not None:
                place = held.enter_context(bulkhead.of())
            response = self._sent(request, held)
            if place is not None:
                place.record_outcome(response)
            if response.is_closed:  # The body was read already, for instance from a cache.
                held.close()
        except BaseException as error:
            if place is not None:
                place.record_outcome(error)
            held.close()
            admitted.failed(error)
            raise
        admitted.answered(response.status_code)
        return response

    def _sent(self, request: httpx.Request, held: ExitStack) -> httpx.Response:
        with Timeout(self._parts.route_timeout(request.url.path)):
            sent, limit = dressed(request, self._parts.http), current_limit()
            response = self._inner.handle_request(sent)
        response.request = request  # For `raise_for_status`.
        stream = cast(httpx.SyncByteStream, response.stream)
        response.stream = _Stream(stream, sent, Patience(limit), held)
        return response


class AsyncTransport(httpx.AsyncBaseTransport):
    """As :class:`Transport`, for :class:`httpx.AsyncClient`: timeouts cut off."""

    def __init__(
        self, parts: Parts | None = None, inner: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._parts = Patterns() if parts is None else parts
        self._inner = inner or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        async with AsyncExitStack() as around:
            if self._parts.guard is not None:
                await around.enter_async_context(self._parts.guard)
            if self._parts.deadline is not None:
                await around.enter_async_context(self._parts.deadline)
            return await self._tried(request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _tried(self, request: httpx.Request) -> httpx.Response:
        is_repeatable = prepare(request)
        retry = self._parts.retry
        call_state = None if retry is None else retry.begin()
        if retry is None or call_state is None:
            return await self._once(request)
        call_state.repeats = is_repeatable
        call_state.enter()
        try:
            while True:
                cause = None
                try:
                    response = await self._once(request)
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

    async def _once(self, request: httpx.Request) -> httpx.Response:
        bulkhead = self._parts.bulkhead
        admitted = Admission(self._parts.breaker)
        held = AsyncExitStack()
        place = None
        try:
            if bulkhead is not None:
                place = await held.enter_async_context(bulkhead.of())
            response = await self._sent(request, held)
            if place is not None:
                place.record_outcome(response)
            if response.is_closed:
                await held.aclose()
        except BaseException as error:
            if place is not None:
                place.record_outcome(error)
            await held.aclose()
            admitted.failed(error)
            raise
        admitted.answered(response.status_code)
        return response

    async def _sent(self, request: httpx.Request, held: AsyncExitStack) -> httpx.Response:
        try:
            async with Timeout(self._parts.route_timeout(request.url.path)):
                sent, limit = dressed(request, self._parts.http), current_limit()
                response = await self._inner.handle_async_request(sent)
        except CallTimeout as late:  # Users of httpx look for its own.
            raise httpx.ReadTimeout(str(late), request=request) from late
        response.request = request  # For `raise_for_status`.
        stream = cast(httpx.AsyncByteStream, response.stream)
        response.stream = _AsyncStream(stream, sent, Patience(limit), held)
        return response


class _Stream(httpx.SyncByteStream):
    """The body of an answer to `sent`, which is late when the try is."""

    def __init__(
        self,
        inner: httpx.SyncByteStream,
        sent: httpx.Request,
        patience: Patience,
        held: ExitStack,
    ) -> None:
        self._inner = inner
        self._sent = sent
        self._patience = patience
        self._held = held

    def __iter__(self) -> Iterator[bytes]:
        self._patience.begin()
        for chunk in self._inner:
            if self._patience.is_over():
                raise _late(self._sent)
            yield chunk
            self._patience.begin()

    def drain(self) -> None:
        """Read what comes at once, undecoded."""
        hurry(self._sent)
        self._patience.shorten(DRAINED_SECONDS)
        size = 0
        for chunk in self:
            size += len(chunk)
            if size > MAX_DRAINED:
                return

    def close(self) -> None:
        with self._held:
            self._inner.close()


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(
        self,
        inner: httpx.AsyncByteStream,
        sent: httpx.Request,
        patience: Patience,
        held: AsyncExitStack,
    ) -> None:
        self._inner = inner
        self._sent = sent
        self._patience = patience
        self._held = held

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._patience.begin()
        async for chunk in self._inner:
            if self._patience.is_over():
                raise _late(self._sent)
            yield chunk
            self._patience.begin()

    async def adrain(self) -> None:
        hurry(self._sent)
        self._patience.shorten(DRAINED_SECONDS)
        size = 0
        async for chunk in self:
            size += len(chunk)
            if size > MAX_DRAINED:
                return

    async def aclose(self) -> None:
        async with self._held:
            await self._inner.aclose()


def _late(request: httpx.Request) -> httpx.ReadTimeout:
    return httpx.ReadTimeout("the answer did not end in time", request=request)


def _drain(response: httpx.Response) -> None:
    """Nobody wants it: let its connection go back to the pool if that costs little. What goes wrong
    with it is nobody's business either."""
    with suppress(Exception):
        try:
            if is_worth_draining(response):
                cast(_Stream, response.stream).drain()
        finally:
            response.close()


async def _adrain(response: httpx.Response) -> None:
    with suppress(Exception):
        try:
            if is_worth_draining(response):
                await cast(_AsyncStream, response.stream).adrain()
        finally:
            await response.aclose()
