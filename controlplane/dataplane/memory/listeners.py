"""Held requests (long polls and streams), and waking them after a change.

Requests are woken in batches limited by number and bytes, so that other requests run in between. A
request whose client stops reading is canceled.
"""

import asyncio
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from controlplane.core.errors import Unavailable

MAX_LISTENERS = 8000
WOKEN_AT_ONCE = 2000
BYTES_AT_ONCE = 64 * 1024 * 1024
MIN_AT_ONCE = 64
MAX_RETRY_SECONDS = 10
STUCK_SECONDS = 20.0
SWEEP_SECONDS = 2.0
SNAPSHOT = "snapshot"
CONFIG = "config"
RELAY = "relay"

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


@dataclass(slots=True, eq=False)
class Listener:
    """A held request, which wakes on a change of its topic, on disconnect, or on timeout."""

    topic: str = SNAPSHOT
    holder: int = 0
    """Id of the token that this held request is counted for."""
    dismissed: bool = False
    """True if the request must end, so that a request of another token can be held."""
    gone: bool = False
    """True once the client has disconnected."""
    stuck: bool = False
    """True if the request was canceled because the client stopped reading."""
    _woken: bool = False
    _sleeping: asyncio.Future[None] | None = None
    watching: asyncio.Future[None] | None = None
    _sending_since: float = 0.0
    _task: asyncio.Task[Any] | None = None

    def wake(self) -> None:
        """End the current wait; if there is none, the next wait ends at once."""
        self._woken = True
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Wait until woken, at most `seconds`; return at once if woken since the last wait."""
        if not self._woken:
            loop = asyncio.get_running_loop()
            self._sleeping = loop.create_future()
            timer = loop.call_later(seconds, self.wake)
            try:
                await self._sleeping
            finally:
                timer.cancel()
                self._sleeping = None
        self._woken = False

    def watch(self, receive: Receive) -> None:
        if self.watching is None:
            self.watching = asyncio.ensure_future(self._watch(receive))

    async def send(self, sending: Awaitable[None]) -> None:
        """Await `sending`; if the client doesn't read in time, set `stuck` and cancel the task.

        `asyncio.timeout` is not used, because it would cost as much as the send itself.
        """
        self._task = asyncio.current_task()
        self._sending_since = time.monotonic()
        await sending
        self._task = None

    def give_up(self, now: float) -> None:
        if self._task is not None and now - self._sending_since > STUCK_SECONDS:
            self.stuck = True
            self._task.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self.wake()


class Listeners:
    """All held requests of this process, at most `most`."""

    def __init__(self, most: int = MAX_LISTENERS) -> None:
        self.most = most
        self.closing = False
        """True during shutdown: no request is held any more."""
        self._open: dict[Listener, None] = {}
        self._by_holder: dict[int, dict[Listener, None]] = {}
        self._dismissed: dict[Listener, None] = {}
        """Dismissed requests that have not ended yet; their clients may have stopped reading."""
        self._to_wake: OrderedDict[Listener, None] = OrderedDict()
        self._sweeping = False
        self._at_once = WOKEN_AT_ONCE

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, topic: str = SNAPSHOT, holder: int = 0) -> Listener:
        """Return a listener for one more held request of the token `holder`, until :meth:`leave`.

        If `most` requests are held already, the oldest request of the token with the most requests
        is dismissed. If that would be unfair, because `holder` would then have as many as that
        token, raises :class:`Unavailable` with a random `Retry-After` that spreads retries.
        """
        if self.closing or (len(self._open) >= self.most and not self._dismiss_one(holder)):
            raise Unavailable(
                "Too many long polls are open. Poll without `wait`, or try later.",
                retry_after=random.randint(1, MAX_RETRY_SECONDS),  # noqa: S311
            )
        listener = Listener(topic, holder)
        self._open[listener] = None
        self._by_holder.setdefault(holder, {})[listener] = None
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)
        return listener

    def leave(self, listener: Listener) -> None:
        if listener.watching is not None:
            listener.watching.cancel()
        self._remove(listener)
        self._dismissed.pop(listener, None)
        self._to_wake.pop(listener, None)

    def notify(self, bytes_each: int = 1, *, topic: str | None = None) -> None:
        """Wake the listeners of `topic`, or of all topics if it is None.

        Each will send about `bytes_each` bytes. Must be called on the event loop if any request is
        held.
        """
        fitting = min(WOKEN_AT_ONCE, max(MIN_AT_ONCE, BYTES_AT_ONCE // max(1, bytes_each)))
        idle = not self._to_wake
        # Those who are still to be woken may send more each than those who join them.
        self._at_once = fitting if idle else min(fitting, self._at_once)
        self._to_wake.update(
            (one, None) for one in self._open if topic is None or one.topic == topic
        )
        if idle and self._to_wake:
            self._wake_some()

    def close(self) -> None:
        self.closing = True
        self.notify()

    def _dismiss_one(self, holder: int) -> bool:
        """Dismiss the oldest request of the token with the most requests.

        Return False, without a change, if `holder` would then have as many requests as that token,
        or more.
        """
        if not self._by_holder:
            return False
        greediest = max(self._by_holder.values(), key=len)
        if len(greediest) <= len(self._by_holder.get(holder, ())) + 1:
            return False
        oldest = next(iter(greediest))
        oldest.dismissed = True
        oldest.wake()
        self._remove(oldest)
        self._dismissed[oldest] = None
        return True

    def _remove(self, listener: Listener) -> None:
        if self._open.pop(listener, listener) is None:
            theirs = self._by_holder[listener.holder]
            del theirs[listener]
            if not theirs:
                del self._by_holder[listener.holder]

    def _wake_some(self) -> None:
        for _ in range(min(self._at_once, len(self._to_wake))):
            self._to_wake.popitem(last=False)[0].wake()
        if self._to_wake:
            asyncio.get_running_loop().call_soon(self._wake_some)

    def _sweep(self) -> None:
        now = time.monotonic()
        for listener in (*self._open, *self._dismissed):
            listener.give_up(now)
        self._sweeping = bool(self._open or self._dismissed)
        if self._sweeping:
            asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)
