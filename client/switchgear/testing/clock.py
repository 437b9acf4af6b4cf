"""A clock that goes on when a test says so."""

import weakref
from typing import Protocol

START = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""


class Watcher(Protocol):
    def time_passed(self) -> None: ...


class FakeClock:
    """A :class:`switchgear.clock.Time` that stands still. `wall` is in UNIX seconds."""

    def __init__(self, wall: float = START) -> None:
        self.watchers: weakref.WeakSet[Watcher] = weakref.WeakSet()
        """Are told when time has passed."""
        self._wall = wall
        self._passed = 0.0

    def monotonic(self) -> float:
        return self._passed

    def wall(self) -> float:
        return self._wall + self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass; raises :class:`ValueError` for less than nothing."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._passed += seconds
        for watcher in list(self.watchers):
            watcher.time_passed()
