"""Requests that are held until something changes: how many there may be, and who wakes them.

A change wakes a few at a time, so that thousands of them leave room for everybody else's requests.
"""

import asyncio
import contextlib
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

from controlplane.core.errors import Unavailable

MOST = 8000
WOKEN_AT_ONCE = 64
LONGEST_RETRY_SECONDS = 10

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Listener:
    """One held request. It is woken by a change, by its caller's leaving, or by time."""

    __slots__ = ("_sleeping", "_woken", "gone")

    def __init__(self) -> None:
        self.gone = False
        """Whether the caller has hung up."""
        self._woken = False
        self._sleeping: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """End the present wait, or else the next one."""
        self._woken = True
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Return once woken, or after `seconds`; at once if woken since the last wait."""
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

    async def watch(self, receive: Receive) -> None:
        """Notice when the caller hangs up."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self.wake()


class Listeners:
    """Every request that is held in this process, at most `most` of them."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.closing = False
        """Whether this process is about to end: nobody is held any longer."""
        self._open: dict[Listener, None] = {}
        self._to_wake: OrderedDict[Listener, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.contextmanager
    def admit(self, receive: Receive) -> Iterator[Listener]:
        """Hold one more request; raises :class:`Unavailable` when there are too many.

        Those that are turned away are told to come back at different times.
        """
        if len(self._open) >= self.most or self.closing:
            raise Unavailable(
                "Too many requests are held here just now; poll without `wait` or try later.",
                retry_after=random.randint(1, LONGEST_RETRY_SECONDS),  # noqa: S311
            )
        listener = Listener()
        self._open[listener] = None
        watching = asyncio.ensure_future(listener.watch(receive))
        try:
            yield listener
        finally:
            watching.cancel()
            del self._open[listener]
            self._to_wake.pop(listener, None)

    def ring(self) -> None:
        """Wake everybody, a few at a time. On the event loop, if anybody is held."""
        idle = not self._to_wake
        self._to_wake.update(self._open)
        if idle and self._to_wake:
            self._wake_some()

    def close(self) -> None:
        """Let everybody go, now and from now on."""
        self.closing = True
        self.ring()

    def _wake_some(self) -> None:
        for _ in range(min(WOKEN_AT_ONCE, len(self._to_wake))):
            self._to_wake.popitem(last=False)[0].wake()
        if self._to_wake:
            asyncio.get_running_loop().call_soon(self._wake_some)
