"""Answers that take their time: a poll that waits for the next version, and streams of events.

Whatever the number of listeners, what they are sent was prepared once. A stream that is not read
holds its own next event and nothing else: when it is read again it gets the latest, and after some
time it is given up.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable

from controlplane.core.errors import DomainError
from controlplane.dataplane.memory.compression import Header
from controlplane.dataplane.memory.listeners import SNAPSHOT, Listener
from controlplane.dataplane.state import State

from .call import Call
from .connection_watch import Visitor

QUIET_SECONDS = 15.0
WATCH_AFTER_SECONDS = 5.0
RETRY_MS = (500, 5000)
COMMENT = b": nothing new\n\n"
NextEvent = Callable[[], tuple[bytes, ...]]
STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


async def until_news(
    state: State,
    call: Call,
    visitor: Visitor,
    seconds: float,
    is_current: Callable[[], bool],
    hears: str = SNAPSHOT,
) -> bool:
    """Hold a poll while `is_current()`, at most `seconds`; False if the caller has hung up.
    `hears` names what it waits for a change of.

    Raises :class:`Unavailable` if too many are held, and what is wrong with the credential by then.
    """
    call.held = True
    listener = state.listeners.enter(hears, _holder(call))
    try:
        began = state.now()
        # To notice who hangs up takes a task; while changes come fast it is not worth one.
        pause = WATCH_AFTER_SECONDS
        while is_current() and not _has_to_end(state, listener):
            remaining = began + seconds - state.now()
            if remaining <= 0:
                break
            await listener.wait(visitor.patience(min(remaining, pause)))
            visitor.check()
            visitor.is_there()
            if state.now() - began >= WATCH_AFTER_SECONDS:
                listener.watch(call.receive)
                pause = QUIET_SECONDS
        return not listener.gone
    finally:
        state.listeners.leave(listener)


async def stream(state: State, call: Call, visitor: Visitor, next_event: NextEvent) -> None:
    """Send each event as it comes and a comment in quiet times, until one side ends it.

    `next_event` gives what has not been sent yet, in pieces, or nothing. Clients are told to come
    back after times that differ, so that a restart is not followed by all of them at once. Raises
    :class:`Unavailable` if too many are held.
    """
    call.held = True
    listener = state.listeners.enter(holder=_holder(call))
    try:
        listener.watch(call.receive)
        await call.begin(200, STREAM_HEADERS)
        with contextlib.suppress(DomainError):  # No longer allowed to listen: it just ends.
            await _events(state, call, visitor, listener, next_event)
        await listener.send(call.end())
    except asyncio.CancelledError:
        # Without a reader there is no end to send: the server cuts an answer that has none.
        task = asyncio.current_task()
        if not listener.stuck or task is None or task.uncancel():
            raise
    finally:
        state.listeners.leave(listener)


async def _events(
    state: State, call: Call, visitor: Visitor, listener: Listener, next_event: NextEvent
) -> None:
    parts: tuple[bytes, ...] = (b"retry: %d\n\n" % random.randint(*RETRY_MS),)  # noqa: S311
    said_at = state.now()
    while not _has_to_end(state, listener):
        for part in parts:
            await listener.send(call.part(part))
            said_at = state.now()
        visitor.check()
        parts = next_event()
        if not parts:
            quiet = max(0.0, said_at + QUIET_SECONDS - state.now())
            await listener.wait(visitor.patience(quiet))
            visitor.is_there()
            if state.now() - said_at >= QUIET_SECONDS:
                parts = (COMMENT,)


def _holder(call: Call) -> int:
    return call.credential.token_id if call.credential else 0


def _has_to_end(state: State, listener: Listener) -> bool:
    return listener.gone or listener.dismissed or state.listeners.closing
