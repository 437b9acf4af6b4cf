"""Long polls that wait for a change, and event streams.

A stream that is not read holds only its next event. When it is read again it gets the latest event;
if it isn't read for long, it is canceled.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable

from controlplane.core.errors import DomainError
from controlplane.dataplane.memory.compression import Header
from controlplane.dataplane.memory.credentials import authenticate
from controlplane.dataplane.memory.listeners import SNAPSHOT, Listener
from controlplane.dataplane.state import State

from .call import INSTANCE, Call

SCOPE = "switches:read"
"""Scope that is required unless a handler names others."""
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


class HeldCaller:
    """The client of a request that may be held for long; its token needs one of `scopes`."""

    __slots__ = ("_call", "_ends_at", "_name", "_owners", "_scopes", "_state", "_table")

    def __init__(self, state: State, call: Call, *scopes: str) -> None:
        self._state = state
        self._call = call
        self._scopes = scopes or (SCOPE,)
        self._name = call.headers.get(INSTANCE)
        self._table = state.tokens
        self._owners = state.owners
        self._ends_at = None if call.credential is None else call.credential.expires_at

    def check(self) -> None:
        """Raise :class:`Forbidden` or :class:`Unauthenticated` if the token is no longer valid."""
        state, expired = self._state, self._ends_at is not None
        is_new = state.tokens is not self._table or state.owners is not self._owners
        if expired or is_new:
            credential = authenticate(
                state.tokens, self._call.headers, *self._scopes, clock=state.unix
            )
            self._table, self._owners = state.tokens, state.owners
            name = self._name
            if name and is_new and state.callers.find_owner_of_instance(credential, name):
                self._name = None

    def limit_wait(self, longest: float) -> float:
        """Return for how many seconds to hold a request: `longest`, or until the token expires."""
        if self._ends_at is None:
            return longest
        return max(0.0, min(longest, self._ends_at - self._state.unix()))

    def record_presence(self) -> None:
        """Record the instance's presence and applied version, before it gets a new version.

        An instance that sends no version at all has restarted, so its applied version is reset.
        """
        if self._name is not None:
            headers = self._call.headers
            applied = headers.get(b"switchgear-applied")
            has_some = b"if-none-match" in headers or b"last-event-id" in headers
            forgets = applied is None and not has_some
            self._state.ledger.presence_buffer.record_presence(
                self._name, applied, self._state.copy, forgets=forgets
            )

    def record_connected(self) -> None:
        if self._name is not None:
            self._state.ledger.presence_buffer.record_presence(self._name, None, self._state.copy)


async def hold_until_changed(
    state: State,
    call: Call,
    caller: HeldCaller,
    seconds: float,
    is_current: Callable[[], bool],
    topic: str = SNAPSHOT,
) -> bool:
    """Hold a request while `is_current()`, at most `seconds`; return False after a disconnect.

    `topic` is the kind of change that wakes the request. Raises :class:`Unavailable` if too many
    requests are held, and the credential's error once the token is invalid.
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
            # Until the connection is watched, a disconnect goes unnoticed.
            if listener.watching is not None and not listener.gone:
                caller.record_connected()
            if state.now() - began >= WATCH_AFTER_SECONDS:
                listener.watch(call.receive)
                pause = QUIET_SECONDS
        return not listener.gone
    finally:
        state.listeners.leave(listener)


async def stream_events(
    state: State, call: Call, caller: HeldCaller, next_event: NextEvent, topic: str = SNAPSHOT
) -> None:
    """Send events, and a comment after each quiet period, until one side ends the stream.

    `next_event` returns the chunks of the next event, or nothing; a change of `topic` wakes the
    stream. Clients get a random reconnection time, so that they don't all return at once after a
    restart. Raises :class:`Unavailable` if too many requests are held.
    """
    call.held = True
    listener = state.listeners.enter(topic, _holder(call))
    try:
        listener.watch(call.receive)
        await call.start_response(200, STREAM_HEADERS)
        with contextlib.suppress(DomainError):  # The credential became invalid: end the stream.
            await _send_events(state, call, caller, listener, next_event)
        await listener.send(call.send_end())
    except asyncio.CancelledError:
        # Without a reader no end can be sent: the server aborts an unfinished answer.
        task = asyncio.current_task()
        if not listener.stuck or task is None or task.uncancel():
            raise
    finally:
        state.listeners.leave(listener)


async def _send_events(
    state: State, call: Call, caller: HeldCaller, listener: Listener, next_event: NextEvent
) -> None:
    parts: tuple[bytes, ...] = (b"retry: %d\n\n" % random.randint(*RETRY_MS),)  # noqa: S311
    sent_at = state.now()
    while not _has_to_end(state, listener):
        for part in parts:
            await listener.send(call.send_part(part))
            sent_at = state.now()
        caller.check()
        parts = next_event()
        if not parts:
            quiet = max(0.0, sent_at + QUIET_SECONDS - state.now())
            await listener.wait(caller.limit_wait(quiet))
            if not listener.gone:
                caller.record_connected()
            if state.now() - sent_at >= QUIET_SECONDS:
                parts = (COMMENT,)


def _holder(call: Call) -> int:
    return call.credential.token_id if call.credential else 0


def _has_to_end(state: State, listener: Listener) -> bool:
    return listener.gone or listener.dismissed or state.listeners.closing
