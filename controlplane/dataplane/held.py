"""Answers that take their time: a poll that waits for the next version, and streams of events.

Whatever the number of listeners, what they are sent was prepared once. A stream that is not read
holds its own next event and nothing else: when it is read again it gets the latest, and after
`STUCK_SECONDS` it is given up.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from controlplane.core.errors import DomainError
from controlplane.dataplane.call import Call
from controlplane.dataplane.listeners import Listener, Receive
from controlplane.dataplane.served_copy import Header
from controlplane.dataplane.state import State

QUIET_SECONDS = 15.0
STUCK_SECONDS = 20.0
RETRY_MS = (500, 5000)
COMMENT = b": nothing new\n\n"
STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


@dataclass(frozen=True)
class Visitor:
    """Whoever is held: `check` raises once the credential is no good; `seen` notes it is there.

    `ends_at` is when the credential expires, in UNIX seconds.
    """

    check: Callable[[], object]
    seen: Callable[[], None]
    ends_at: float | None

    def patience(self, state: State, longest: float) -> float:
        """How long to wait at most before looking at the credential again, in seconds."""
        if self.ends_at is None:
            return longest
        return max(0.0, min(longest, self.ends_at - state.unix()))


async def until_news(
    state: State,
    visitor: Visitor,
    receive: Receive,
    seconds: float,
    is_current: Callable[[], bool],
) -> bool:
    """Hold a poll while `is_current()`, at most `seconds`; False if the caller has hung up.

    Raises :class:`Unavailable` if too many are held, and what `visitor.check` raises.
    """
    ends_at = state.now() + seconds
    with state.listeners.admit(receive) as listener:
        while is_current() and not (listener.gone or state.listeners.closing):
            remaining = ends_at - state.now()
            if remaining <= 0:
                break
            await listener.wait(visitor.patience(state, min(remaining, QUIET_SECONDS)))
            visitor.check()
            visitor.seen()
        return not listener.gone


async def stream(
    state: State,
    visitor: Visitor,
    call: Call,
    next_event: Callable[[], bytes | None],
) -> None:
    """Send each event as it comes and a comment in quiet times, until one side ends it.

    `next_event` gives what has not been sent yet, or None. Clients are told to come back after
    times that differ, so that a restart is not followed by all of them at once. Raises
    :class:`Unavailable` if too many are held.
    """
    with state.listeners.admit(call.receive) as listener:
        await call.begin(200, STREAM_HEADERS)
        # Without a reader there is no end to send: the server cuts an answer that has none.
        with contextlib.suppress(TimeoutError):
            with contextlib.suppress(DomainError):  # No longer allowed to listen.
                await _events(state, visitor, call, listener, next_event)
            await _soon(call.end())


async def _events(
    state: State,
    visitor: Visitor,
    call: Call,
    listener: Listener,
    next_event: Callable[[], bytes | None],
) -> None:
    part: bytes | None = b"retry: %d\n\n" % random.randint(*RETRY_MS)  # noqa: S311
    said_at = state.now()
    while not (listener.gone or state.listeners.closing):
        if part is not None:
            await _soon(call.part(part))
            said_at = state.now()
        visitor.check()
        part = next_event()
        if part is None:
            quiet = max(0.0, said_at + QUIET_SECONDS - state.now())
            await listener.wait(visitor.patience(state, quiet))
            visitor.seen()
            if state.now() - said_at >= QUIET_SECONDS:
                part = COMMENT


async def _soon(sending: Awaitable[None]) -> None:
    async with asyncio.timeout(STUCK_SECONDS):
        await sending
