"""Held answers: polls that wait for the next version, and event streams.

Whatever the number of listeners, events are rendered once. A stream that is not read holds only its
own next event; when it is read again it gets the latest, and it is canceled after some time.
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
from .connection_watch import HeldCaller

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


async def hold_until_changed(
    state: State,
    call: Call,
    caller: HeldCaller,
    seconds: float,
    is_current: Callable[[], bool],
    topic: str = SNAPSHOT,
) -> bool:
    """Hold a poll while `is_current()`, at most `seconds`; return False after a disconnect.

    `hears` names the kind of change that ends the wait. Raises :class:`Unavailable` if too many
    requests are held, and the credential's error if it becomes invalid.
    """
    call.held = True
    listener = state.listeners.enter(topic, _holder(call))
    try:
        began = state.now()
        # Detecting a disconnect takes a task, which isn't worth it for short waits.
        pause = WATCH_AFTER_SECONDS
        while is_current() and not _has_to_end(state, listener):
            remaining = began + seconds - state.now()
            if remaining <= 0:
                break
            await listener.wait(caller.limit_wait(min(remaining, pause)))
            caller.check()
            caller.record_connected()
            if state.now() - began >= WATCH_AFTER_SECONDS:
                listener.watch(call.receive)
                pause = QUIET_SECONDS
        return not listener.gone
    finally:
        state.listeners.leave(listener)


async def stream(state: State, call: Call, caller: HeldCaller, next_event: NextEvent) -> None:
    """Send events as they come, and a comment in quiet periods, until one side ends it.

    `next_event` returns what has not been sent yet, in chunks, or nothing. Clients get randomized
    reconnection times, so that they don't all return at once after a restart. Raises
    :class:`Unavailable` if too many requests are held.
    """
    call.held = True
    listener = state.listeners.enter(holder=_holder(call))
    try:
        listener.watch(call.receive)
        await call.begin(200, STREAM_HEADERS)
        with contextlib.suppress(DomainError):  # The credential became invalid: end the stream.
            await _events(state, call, caller, listener, next_event)
        await listener.send(call.end())
    except asyncio.CancelledError:
        # Without a reader no end can be sent: the server aborts an unfinished answer.
        task = asyncio.current_task()
        if not listener.stuck or task is None or task.uncancel():
            raise
    finally:
        state.listeners.leave(listener)


async def _events(
    state: State, call: Call, caller: HeldCaller, listener: Listener, next_event: NextEvent
) -> None:
    parts: tuple[bytes, ...] = (b"retry: %d\n\n" % random.randint(*RETRY_MS),)  # noqa: S311
    said_at = state.now()
    while not _has_to_end(state, listener):
        for part in parts:
            await listener.send(call.part(part))
            said_at = state.now()
        caller.check()
        parts = next_event()
        if not parts:
            quiet = max(0.0, said_at + QUIET_SECONDS - state.now())
            await listener.wait(caller.limit_wait(quiet))
            caller.record_connected()
            if state.now() - said_at >= QUIET_SECONDS:
                parts = (COMMENT,)


def _holder(call: Call) -> int:
    return call.credential.token_id if call.credential else 0


def _has_to_end(state: State, listener: Listener) -> bool:
    return listener.gone or listener.dismissed or state.listeners.closing
