"""The console's time, estimated from its answers and continued by the local monotonic clock.

Expiries are in the console's time. :meth:`ConsoleClock.now` is the best estimate, for reports.
:meth:`ConsoleClock.release_now` is a cautious estimate, used to end engagements; None until recent
answers agree.
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Protocol

TOLERANCE_SECONDS = 1.0
"""Difference below which two times count as equal, since `Date` has whole seconds only."""
MAX_ANSWERS = 9
"""Number of recent answers that the estimate is based on."""
MIN_AGREEING = 3
"""Number of answers that must agree before they may end an engagement."""
AGREEMENT_SECONDS = 60.0
"""Largest difference between two answers that agree."""
VERSION_SECONDS = 2.0
"""Allowance, in seconds, for the time between publication of a version and its arrival."""
TIME_HEADER = "switchgear-time"
"""Header with PostgreSQL's time as received by the data plane: UNIX seconds, or `unknown`."""


class Time(Protocol):
    """Interface of a source of time: :class:`SystemTime`, or the tests' `FakeClock`."""

    def monotonic(self) -> float:
        """Return seconds of a clock that never goes back."""

    def wall(self) -> float:
        """Return UNIX seconds by the local clock, which may be wrong."""


class SystemTime:
    """A source of time: the clocks of this machine."""

    monotonic = staticmethod(time.monotonic)

    def wall(self) -> float:
        return time.time()


class Alarm(Protocol):
    """Interface of an alarm on a fake clock; it is dropped with the last reference to it."""

    real_seconds: float
    """Maximum real time, in seconds, to wait for the alarm."""

    def advance(self) -> None:
        """Advance the clock to the time of the alarm, unless that time has passed."""


def alarm_setter(
    clock: Callable[[], float],
) -> Callable[[float, Callable[[], object]], Alarm] | None:
    """Return the method `set_alarm` of the :class:`FakeClock` that `clock` belongs to.

    Return None for a real clock.
    """
    return getattr(getattr(clock, "__self__", None), "set_alarm", None)


def parse_date(text: str | None) -> float | None:
    """Return the UNIX seconds of an HTTP date, by default in UTC; None if it is invalid."""
    from email.utils import parsedate_to_datetime  # HTTP libraries have imported it.

    try:
        date = parsedate_to_datetime(text or "")
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def parse_time(text: str) -> float | None:
    """Return the UNIX seconds of a `Switchgear-Time` header; None if it is unknown or malformed."""
    number = re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", text.strip(), re.ASCII)
    return None if number is None else float(number[0])


def parse_retry_after_header(text: str | None, now: float) -> float | None:
    """Return the seconds of a `Retry-After` header, a number or a date; None if it is invalid.

    `now` is UNIX seconds by the sender's clock.
    """
    if text is None or len(text) > 100:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    date = parse_date(text)
    return None if date is None else max(date - now, 0.0)


class OffsetEstimator:
    """An estimator of the console's clock offset from the monotonic clock. Pure.

    An offset is the console's time in an answer minus the monotonic time at the same moment, so
    equal offsets mean that both clocks run alike.
    """

    def __init__(self) -> None:
        self.median: float | None = None
        """The median of the latest `MAX_ANSWERS` offsets. Of an even number of offsets, the lower
        of the two middle ones."""
        self.trusted: float | None = None
        """The offset that may be used to end engagements. None until `MIN_AGREEING` answers agree
        with the median, and while fewer than two thirds of the latest answers agree with it."""
        self._offsets: deque[float] = deque(maxlen=MAX_ANSWERS)
        self._anchor: float | None = None

    def add(self, offset: float) -> None:
        """Record the offset of one more answer, and update the offset that is trusted.

        The trusted offset is the median of recent offsets; None while too few of them agree. A
        lower median is trusted at once, since an earlier time ends fewer engagements. A median that
        is more than `AGREEMENT_SECONDS` higher (at first: than the lowest offset) is trusted only
        when all of the latest `MAX_ANSWERS` agree, since a majority may come from one proxy with a
        wrong clock.
        """
        self._offsets.append(offset)
        ordered = sorted(self._offsets)
        median = self.median = ordered[(len(ordered) - 1) // 2]
        agreeing = sum(abs(each - median) <= AGREEMENT_SECONDS for each in ordered)
        if agreeing < MIN_AGREEING or 3 * agreeing < 2 * len(ordered):
            self.trusted = None
            return
        anchor = ordered[0] if self._anchor is None else self._anchor
        is_jump = median > anchor + AGREEMENT_SECONDS
        if not is_jump or agreeing == MAX_ANSWERS:
            self._anchor = median
        self.trusted = self._anchor


class ConsoleClock:
    """The console's clock, in UNIX seconds; the local clock until the console has answered."""

    def __init__(self, time: Time) -> None:
        self.time = time
        self._lock = threading.RLock()
        self._estimator = OffsetEstimator()
        self._is_precise = False
        """True once an answer had a `Switchgear-Time`; `Date` is ignored from then on."""
        self._offset: float | None = None
        """The difference of the console's clock and the monotonic one."""
        self._stable_offset: float | None = None
        """The offset that :meth:`from_monotonic` last used."""
        self._max_offset = float("inf")
        """The upper limit of the offset, from the publication time of the latest version."""
        self._release_offset: float | None = None
        self._is_local = False

    def now(self) -> float:
        """Return the console's time by the median offset of recent answers, or the local time."""
        offset = self._offset
        return self.time.wall() if offset is None else self.time.monotonic() + offset

    def release_now(self) -> float | None:
        """Return a cautious current time, for ending expired engagements without the console.

        Return None while recent answers disagree, whatever the local clock shows. The returned time
        may be behind the console's clock, but not ahead of it.
        """
        offset = self._release_offset
        if offset is None:
            return self.time.wall() if self._is_local else None
        return self.time.monotonic() + offset

    def trust_local(self) -> None:
        """Use the local clock as the console's, for a console in the same process."""
        self._is_local = True

    def from_monotonic(self, monotonic: float) -> float:
        """Convert a time of the monotonic clock to the console's time, in UNIX seconds.

        Repeated calls return the same time, unless the console's clock is corrected.
        """
        offset = self._offset
        if offset is None:
            offset = self.time.wall() - self.time.monotonic()
        stable = self._stable_offset
        if stable is None or abs(offset - stable) > TOLERANCE_SECONDS:
            # Smaller differences come from the time between two readings, or from clock slewing.
            self._stable_offset = stable = offset
        return monotonic + stable

    def update(self, headers: Mapping[str, str], took_seconds: float, ago_seconds: float) -> None:
        """Correct the clock by the time in the headers of an answer.

        The answer took `took_seconds` and arrived `ago_seconds` ago. Names in `headers` are lower
        case; a malformed time is ignored. `Switchgear-Time` is PostgreSQL's time, at the end of a
        long poll. `Date`, which may be the time of any proxy, is used only until the first valid
        `Switchgear-Time`, and never beside one in the same answer.
        """
        sent_time = headers.get(TIME_HEADER)
        if sent_time is None:
            date = None if self._is_precise else parse_date(headers.get("date"))
            theirs = None if date is None else date + 0.5
        else:
            theirs = parse_time(sent_time)
        if theirs is None:
            return
        blur = min(took_seconds, TOLERANCE_SECONDS) / 2
        offset = theirs - (self.time.monotonic() - ago_seconds - blur)
        with self._lock:
            if sent_time is not None and not self._is_precise:
                self._is_precise, self._estimator = True, OffsetEstimator()
            self._estimator.add(offset)
            median = self._estimator.median
            assert median is not None  # noqa: S101 - for the type.
            if self._offset is None or abs(median - self._offset) > TOLERANCE_SECONDS + blur:
                self._offset = median
            self._update_release_offset()

    def limit_by_version(self, published_at: float, since_seconds: float) -> None:
        """Set an upper limit for :meth:`release_now`, from the time of publication of a snapshot.

        The snapshot was published at `published_at`, UNIX seconds by PostgreSQL's clock, and at
        most `since_seconds` ago; their sum is the limit. So an engagement that had N seconds left
        at publication ends at the earliest about N seconds later by the monotonic clock, whatever
        the headers of answers say.
        """
        latest = published_at + since_seconds + VERSION_SECONDS
        with self._lock:
            self._max_offset = latest - self.time.monotonic()
            self._update_release_offset()

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def _update_release_offset(self) -> None:
        trusted = self._estimator.trusted
        self._release_offset = None if trusted is None else min(trusted, self._max_offset)
