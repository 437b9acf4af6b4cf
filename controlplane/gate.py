"""Stands before Django: nobody waits for a database that does not answer, no body is endless.

While the data plane can't reach PostgreSQL, requests are refused at once with 503 and
`Retry-After`; one that was under way when it froze is given up after `DEADLINE_SECONDS`. What needs
no database (static files, health, metrics) always passes. Django itself would write a body of any
size to disk before it asks who sends it.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from prometheus_client.core import Metric

from controlplane.core import histograms
from controlplane.core.deadline import IN_SCOPE
from controlplane.core.errors import DomainError, TooLarge, Unavailable
from controlplane.core.histograms import Histogram
from controlplane.core.wire import largest_body, too_large
from controlplane.dataplane.call import (
    ASGIApplication,
    Call,
    Message,
    Receive,
    Scope,
    Send,
    drain,
)
from controlplane.dataplane.state import State

DEADLINE_SECONDS = 8.0
RETRY_AFTER_SECONDS = 3
REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds of the latency histogram."""
PASSES = ("/static/", "/health/", "/metrics")

Refuse = Callable[[Call, DomainError], Awaitable[None]]


class Gate:
    """An ASGI application around another; `refuse` words a refusal for whoever asks.

    `sockets` serves WebSockets; without it each is closed.
    """

    def __init__(
        self,
        inner: ASGIApplication,
        state: State,
        refuse: Refuse,
        deadline_seconds: float = DEADLINE_SECONDS,
        sockets: ASGIApplication | None = None,
    ) -> None:
        self._inner = inner
        self._state = state
        self._refuse = refuse
        self._deadline_seconds = deadline_seconds
        self._sockets = sockets
        self._seconds: dict[tuple[str, str, str], Histogram] = {}

    def latencies(self) -> Iterator[Metric]:
        """The histogram of requests by kind (`page` or `api`) and class of status."""
        yield histograms.family(
            "switchgear_web_request_seconds",
            "Seconds to answer a request of a person or a program, by kind and class of status.",
            ("kind", "code", "worker"),
            list(self._seconds.items()),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            # They know themselves what they can do without a database, and have no end in time.
            await (self._sockets or _no_sockets)(scope, receive, send)
            return
        began = time.perf_counter()
        needs_database = not scope["path"].startswith(PASSES)
        if needs_database and not self._state.database_reachable:
            call = Call(scope, receive, send)
            await self._refuse(call, _no_answer())
            self._observe(call.scope, call.status, began)
            return
        metered = _Metered(receive, send, largest_body(scope["path"]))
        try:
            await self._pass(scope, metered, self._deadline_seconds if needs_database else None)
        except TooLarge as error:
            if metered.more_body:
                await drain(receive)
            await self._refuse(Call(scope, receive, metered.send), error)
        finally:
            if needs_database:
                self._observe(scope, metered.status, began)

    def _observe(self, scope: Scope, status: int, began: float) -> None:
        if not status:  # The caller went away before there was an answer.
            return
        kind = "api" if scope["path"].startswith("/api/") else "page"
        labels = kind, f"{status // 100}xx", str(os.getpid())
        found = self._seconds.get(labels)
        if found is None:
            found = self._seconds[labels] = Histogram(REQUEST_SECONDS)
        found.observe(time.perf_counter() - began)

    async def _pass(self, scope: Scope, metered: "_Metered", deadline: float | None) -> None:
        """Give up on an answer that does not begin in time; one that has begun may take longer."""
        ends = None if deadline is None else time.monotonic() + deadline
        inner = self._inner({**scope, IN_SCOPE: ends}, metered.receive, metered.send)
        task = asyncio.ensure_future(inner)
        try:
            await asyncio.wait({task}, timeout=deadline)
        except asyncio.CancelledError:  # The caller went away.
            task.cancel()
            raise
        if task.done() or metered.started:
            await task
            return
        # Its thread is stuck in the database and can't be stopped: it ends when it can, mute, and
        # takes back what it wrote, because it sees the deadline before it commits.
        metered.muted = True
        task.add_done_callback(_forget)
        metered.status = 503
        await self._refuse(Call(scope, metered.receive, metered.out), _no_answer())


class _Metered:
    """One request's way in and out: counts its body, notes that its answer has begun."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self.out = send
        self._limit = limit
        self.started = False
        self.status = 0
        self.muted = False
        self.more_body = False
        self._in = receive
        self._received = 0

    async def receive(self) -> Message:
        message = await self._in()
        self.more_body = bool(message.get("more_body"))
        self._received += len(message.get("body", b""))
        if self._received > self._limit:
            raise too_large(self._limit)
        return message

    async def send(self, message: Message) -> None:
        if self.muted:
            return
        self.started = True
        self.status = message.get("status", self.status)
        await self.out(message)


async def _no_sockets(_scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close"})


def _no_answer() -> Unavailable:
    return Unavailable(
        "The database does not answer. Nothing was changed as far as we know; "
        "repeat the request with the same Idempotency-Key.",
        retry_after=RETRY_AFTER_SECONDS,
    )


def _forget(task: "asyncio.Future[Any]") -> None:
    if not task.cancelled():
        task.exception()
