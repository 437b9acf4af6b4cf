"""A clock for tests, which they advance."""

import threading
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol

from switchgear import async_backend

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
MAX_REAL_SECONDS = 1.0
"""Longest real wait of a call in a queue; after it the clock is advanced to the end of the wait."""


class ClockListener(Protocol):
    def time_passed(self) -> None: ...


class FakeClock:
    """A :class:`switchgear.clock.Time` for tests, which stands still until a test advances it.

    As the `time` of a client or a :class:`Console` it is the clock of all their policies: a
    back-off advances the clock and returns at once, so that time passes for deadlines, budgets and
    the windows and open times of breakers. Patterns without a client take `clock=clock.monotonic`,
    and a `Retry` also `sleep=clock.sleep`.

    A timeout, deadline or wait in a queue ends when the clock is advanced past its end. A call that
    would wait in a queue for more than a second of real time advances the clock itself. `wall` is
    in UNIX seconds. Safe to use from any thread.
    """

    def __init__(self, wall: float = START) -> None:
        self.listeners: weakref.WeakSet[ClockListener] = weakref.WeakSet()
        """Objects to notify when time has passed. Add one with :meth:`watch`."""
        self._wall = wall
        self._passed = 0.0
        self._lock = threading.RLock()

    def monotonic(self) -> float:
        return self._passed

    def wall(self) -> float:
        return self._wall + self._passed

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass. Raise :class:`ValueError` for a negative number."""
        if seconds < 0:
            raise ValueError("time can't go back")
        with self._lock:
            self._passed += seconds
            listeners = list(self.listeners)
        for listener in listeners:
            listener.time_passed()

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Advance the clock by `seconds`, instead of waiting. A coroutine may await the result."""
        self.advance(seconds)
        return _Slept()

    async def async_sleep(self, seconds: float) -> None:
        """Like :meth:`sleep`, as a replacement for `asyncio.sleep` and `trio.sleep`."""
        await self.sleep(seconds)

    def watch(self, listener: ClockListener) -> None:
        """Notify `listener` whenever the clock is advanced. Keeps only a weak reference to it."""
        with self._lock:
            self.listeners.add(listener)

    def set_alarm(self, seconds: float, ring: Callable[[], object]) -> "FakeAlarm":
        """Return an alarm that calls `ring` once the clock has advanced by `seconds`.

        The alarm ends when it is garbage-collected.
        """
        return FakeAlarm(self, seconds, ring)


class FakeAlarm:
    """An alarm of a :class:`FakeClock`, in place of a real :class:`switchgear.clock.Alarm`."""

    def __init__(self, clock: FakeClock, seconds: float, ring: Callable[[], object]) -> None:
        self.real_seconds = min(seconds, MAX_REAL_SECONDS)
        self._clock, self._ring = clock, ring
        self._at = clock.monotonic() + seconds
        clock.watch(self)

    def time_passed(self) -> None:
        if self._clock.monotonic() >= self._at:
            self._ring()

    def advance(self) -> None:
        self._clock.advance(max(self._at - self._clock.monotonic(), 0.0))


class _Slept:
    """The result of :meth:`FakeClock.sleep`, which a coroutine may await.

    It is not a coroutine, so Python does not warn if nobody awaits it.
    """

    def __await__(self) -> Generator[Any, Any, None]:
        return async_backend.sleep(0.0).__await__()
