"""Stands before Django: nobody waits for a database that does not answer.

While the data plane can't reach PostgreSQL, requests are refused at once with 503 and
`Retry-After`; one that was under way when it froze is given up after `DEADLINE_SECONDS`. What needs
no database (static files, health, metrics) always passes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from controlplane.dataplane.application import ASGIApplication, Message, Receive, Scope, Send
from controlplane.dataplane.state import State

DEADLINE_SECONDS = 8.0
PASSES = ("/static/", "/health/", "/metrics")

Refuse = Callable[[Scope, Send], Awaitable[None]]


class DatabaseGate:
    """An ASGI application around another; `refuse` sends the 503."""

    def __init__(
        self,
        inner: ASGIApplication,
        state: State,
        refuse: Refuse,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._inner = inner
        self._state = state
        self._refuse = refuse
        self._deadline_seconds = deadline_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(PASSES):
            await self._inner(scope, receive, send)
        elif not self._state.database_reachable:
            await self._refuse(scope, send)
        else:
            await self._with_deadline(scope, receive, send)

    async def _with_deadline(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give up on an answer that does not begin in time; one that has begun may take longer."""
        call = _Call(send)
        task = asyncio.ensure_future(self._inner(scope, receive, call.send))
        try:
            await asyncio.wait({task}, timeout=self._deadline_seconds)
        except asyncio.CancelledError:  # The caller went away.
            task.cancel()
            raise
        if not task.done() and not call.started:
            # Its thread is stuck in the database and can't be stopped: it is left behind, mute.
            call.muted = True
            task.cancel()
            task.add_done_callback(_forget)
            await self._refuse(scope, send)
            return
        await task


class _Call:
    """One request's way out: notes that the answer has begun, and can be closed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False
        self.muted = False

    async def send(self, message: Message) -> None:
        if self.muted:
            return
        self.started = True
        await self._send(message)


def _forget(task: "asyncio.Future[Any]") -> None:
    if not task.cancelled():
        task.exception()
