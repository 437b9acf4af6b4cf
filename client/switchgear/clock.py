"""What time it is at the console.

Expiries are by the console's clock. Its `Date` headers correct ours, and a clock that is never set
back carries the time on between them.
"""

import threading
import time
from email.utils import parsedate_to_datetime
from typing import Protocol

TOLERANCE_SECONDS = 1.0
"""`Date` has whole seconds: what differs by less says nothing new."""


class Time(Protocol):
    """Where the time comes from; :class:`switchgear.testing.FakeClock` is another one."""

    def monotonic(self) -> float:
        """Seconds on a clock that is never set back."""
        ...

    def wall(self) -> float:
        """UNIX seconds by the local clock, which may be wrong."""
        ...


class SystemTime:
    """The machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class ConsoleClock:
    """UNIX seconds by the console's clock; by the local one until the console has been heard."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self._lock = threading.RLock()
        self._ahead = time.wall() - time.monotonic()
        self._heard = False

    def now(self) -> float:
        return self.time.monotonic() + self._ahead

    def heard(self, date: str | None, asked_at: float, answered_at: float) -> None:
        """Take over a `Date` header of an answer; the two moments are on the monotonic clock.

        One that can't be read is left aside. An answer that was held says the time at its end.
        """
        try:
            theirs = parsedate_to_datetime(date or "").timestamp() + 0.5
        except (ValueError, TypeError, OverflowError, IndexError):
            return
        blur = min(answered_at - asked_at, TOLERANCE_SECONDS) / 2
        ahead = theirs - (answered_at - blur)
        with self._lock:
            if not self._heard or abs(ahead - self._ahead) > TOLERANCE_SECONDS + blur:
                self._ahead, self._heard = ahead, True

    def after_fork(self) -> None:
        """The lock may have been held by a thread that is not in this process."""
        self._lock = threading.RLock()
