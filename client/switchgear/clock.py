"""What time it is at the console.

Expiries are by the console's clock. Its `Date` headers correct ours, and a clock that is never set
back carries the time on between them.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC
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

    monotonic = staticmethod(time.monotonic)

    def wall(self) -> float:
        return time.time()


class Alarm(Protocol):
    """A moment on a clock that tests advance. It is forgotten once nobody holds it."""

    real_seconds: float
    """The longest real wait for that moment."""

    def go_off(self) -> None:
        """Advance the clock to that moment, unless it has passed."""
        ...


def alarm_setter(
    clock: Callable[[], float],
) -> Callable[[float, Callable[[], object]], Alarm] | None:
    """Return what calls a function once so many seconds have passed by `clock`, if that is the
    `monotonic` of a :class:`switchgear.testing.FakeClock`; None for a clock that goes by itself."""
    return getattr(getattr(clock, "__self__", None), "set_alarm", None)


def read_date(text: str | None) -> float | None:
    """The UNIX seconds of an HTTP date, None for what is none. HTTP's dates are in UTC, also those
    that do not say so."""
    try:
        date = parsedate_to_datetime(text or "")
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def read_retry_after(text: str | None, now: float) -> float | None:
    """Seconds that a `Retry-After` header asks for, as a number or a date. None if it says nothing
    that makes sense. `now` is UNIX seconds by the sender's clock."""
    if text is None or len(text) > 100:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    date = read_date(text)
    return None if date is None else max(date - now, 0.0)


class ConsoleClock:
    """UNIX seconds by the console's clock; by the local one until the console has been heard."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self._lock = threading.RLock()
        self._ahead: float | None = None
        """What the console's clock shows more than the monotonic one."""
        self._placed: float | None = None
        """The same, as moments were told by it last."""

    def now(self) -> float:
        ahead = self._ahead
        return self.time.wall() if ahead is None else self.time.monotonic() + ahead

    def at(self, monotonic: float) -> float:
        """What :meth:`now` was at that moment of the monotonic clock. One moment is told as the
        same time again and again, unless the console's clock turns out to be another one."""
        ahead = self._ahead
        if ahead is None:
            ahead = self.time.wall() - self.time.monotonic()
        placed = self._placed
        if placed is None or abs(ahead - placed) > TOLERANCE_SECONDS:
            # Less is the moment between two readings, or what a clock is slewed by.
            self._placed = placed = ahead
        return monotonic + placed

    def heard(self, date: str | None, took_seconds: float, ago_seconds: float) -> None:
        """Take over a `Date` header of an answer that took so long, and came so long ago.

        One that can't be read is left aside. An answer that was held says the time at its end.
        """
        theirs = read_date(date)
        if theirs is None:
            return
        blur = min(took_seconds, TOLERANCE_SECONDS) / 2
        ahead = theirs + 0.5 - (self.time.monotonic() - ago_seconds - blur)
        with self._lock:
            if self._ahead is None or abs(ahead - self._ahead) > TOLERANCE_SECONDS + blur:
                self._ahead = ahead

    def after_fork(self) -> None:
        """The lock may have been held by a thread that is not in this process."""
        self._lock = threading.RLock()
