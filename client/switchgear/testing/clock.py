"""A clock that tests advance."""

import threading
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol

from switchgear import async_backend

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""
MAX_REAL_SECONDS = 1.0
"""Longest real wait of a call in a queue; the clock is advanced to the end of its wait then."""


class Watcher(Protocol):
    def time_passed(self) -> None: ...


class FakeClock:
    """A :class:`switchgear.clock.Time` that stands still until it is advanced. `wall` is in UNIX
    seconds.

    As the `time` of a client or a :class:`Console` it serves all its policies: back-offs advance it
    and return at once, so that deadlines, budgets and the windows and open times of breakers see
    the time pass. Patterns of their own take `clock=clock.monotonic`, and a `Retry` also
    `sleep=clock.sleep`. To advance it past a timeout, a deadline or a wait in a queue ends that. A
    call that would wait in a queue for more than a second of real time advances the clock itself.
    Safe to use from any thread.
    """

    def __init__(self, wall: float = START) -> None:
        self.watchers: weakref.WeakSet[Watcher] = weakref.WeakSet()
        """Told when time has passed. Add one by :meth:`watch`."""
        self._wall = wall
        self._passed = 0.0
        self._lock = threading.RLock()

    def monotonic(self) -> float:
        return self._passed

    def wall(self) -> float:
        return self._wall + self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass; raises :class:`ValueError` for less than nothing."""
        if seconds < 0:
            raise ValueError("time does not go back")
        with self._lock:
            self._passed += seconds
            watchers = list(self.watchers)
        for watcher in watchers:
            watcher.time_passed()

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Advance the clock by `seconds` instead of waiting. In a coroutine the result can be
        awaited, to let other tasks run; it need not be."""
        self.advance(seconds)
        return _Slept()

    async def async_sleep(self, seconds: float) -> None:
        """As :meth:`sleep`, in the place of `asyncio.sleep` and `trio.sleep`."""
        await self.sleep(seconds)

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` when time has passed, for as long as somebody else holds it."""
        with self._lock:
            self.watchers.add(watcher)

    def set_alarm(self, seconds: float, ring: Callable[[], object]) -> "Alarm":
        """Call `ring` once `seconds` have passed, if somebody still holds the result then."""
        return Alarm(self, seconds, ring)


class Alarm:
    """See :class:`switchgear.clock.Alarm`."""

    def __init__(self, clock: FakeClock, seconds: float, ring: Callable[[], object]) -> None:
        self.real_seconds = min(seconds, MAX_REAL_SECONDS)
        self._clock, self._ring = clock, ring
        self._at = clock.monotonic() + seconds
        clock.watch(self)

    def time_passed(self) -> None:
        if self._clock.monotonic() >= self._at:
            self._ring()

    def go_off(self) -> None:
        self._clock.advance(max(self._at - self._clock.monotonic(), 0.0))


class _Slept:
    """A wait that is over already: without a coroutine in it, it may be left aside."""

    def __await__(self) -> Generator[Any, Any, None]:
        return async_backend.sleep(0.0).__await__()
