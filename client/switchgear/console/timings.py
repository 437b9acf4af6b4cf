"""Timeouts, intervals and delays of all communication with the console.

Every delay is drawn from a range: a thousand clients must not send requests at one moment
after an outage of the console.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from switchgear.clock import parse_retry_after_header
from switchgear.console.errors import RequestFailed

Draw = Callable[[], float]
"""A function that returns a random number, uniform in [0, 1)."""

FIRST_SECONDS, MAX_SECONDS = 2.0, 20.0
REFUSED_FIRST_SECONDS, REFUSED_MAX_SECONDS = 15.0, 60.0
"""Backoff of fetches after a 401 or 403: the refusal lasts until the token is replaced."""
MAX_RETRY_AFTER_SECONDS = 60.0
POLL_JITTER = 0.2
REFUSED_SECONDS = 300.0
"""Pause of reports or acknowledgements after a 403."""
REFUSAL_STATUSES = (400, 403, 404, 413, 422)
FREE_SECONDS, PAUSE_FACTOR, MAX_PAUSE_SECONDS = 0.01, 4, 2.0
"""After more than `FREE_SECONDS` of CPU time, pause `PAUSE_FACTOR` times as long, up to a
maximum."""

log = logging.getLogger("switchgear")


@dataclass(frozen=True)
class Timings:
    """Timeouts and intervals in seconds. Tests use shorter ones."""

    answer: float = 10.0
    hold: int = 25
    """Time for which the console may hold a poll."""
    silence: float = 20.0
    """Longest silence of a stream."""
    event: float = 30.0
    """Longest time from the first byte of an event on a stream to its last."""
    max_poll: float = 300.0
    """Longest pause between two plain polls, whatever the console requests."""
    report: float = 10.0
    """Interval of reports, and of acknowledgements while a stream is followed."""
    report_answer: float = 5.0
    """Timeout of a report or an acknowledgement."""
    bootstrap: float = 2.0
    """Longest wait of a constructor for the URL of its bootstrap."""
    fallback_after: float = 10.0
    """Time for which the console must have failed before the fallback URL is read."""
    fallback_poll: float = 5.0
    """Interval between two reads of the fallback URL."""
    fallback_check: float = 1.0
    """Interval of the checks whether the fallback URL must be read."""
    draw: Draw = random.random
    """Source of all jitter."""


def backoff_delay(
    failures: int,
    draw: Draw,
    first_seconds: float = FIRST_SECONDS,
    max_seconds: float = MAX_SECONDS,
) -> float:
    """Return the seconds to wait after n `failures`: U(0, min(max_seconds, first_seconds·2ⁿ⁻¹))."""
    ceiling: float = first_seconds * 2 ** min(max(failures, 1) - 1, 16)
    return draw() * min(max_seconds, ceiling)


def failure_delay(
    failures: int,
    draw: Draw,
    status: int | None = None,
    retry_after_seconds: float | None = None,
    hint_seconds: float | None = None,
) -> float:
    """Return the seconds to wait after `failures` failures in a row, by :func:`backoff_delay`.

    The range is longer after a 401 or 403. `retry_after_seconds` is added to the random delay, so
    that clients don't return at one moment. `hint_seconds`, a stream's reconnection delay, replaces
    a shorter `FIRST_SECONDS`.
    """
    if status in (401, 403):
        pause = backoff_delay(failures, draw, REFUSED_FIRST_SECONDS, REFUSED_MAX_SECONDS)
    else:
        first = max(FIRST_SECONDS, min(hint_seconds or 0.0, MAX_SECONDS))
        pause = backoff_delay(failures, draw, first)
    return pause if retry_after_seconds is None else retry_after_seconds + pause


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds of a `Retry-After` header, 60 at most; None if invalid."""
    seconds = parse_retry_after_header(text, now)
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER_SECONDS)


def poll_delay(seconds: float, draw: Draw) -> float:
    return seconds * (1 + POLL_JITTER * (2 * draw() - 1))


@dataclass
class SendSchedule:
    """The schedule of reports or acknowledgements, with backoff after failures.

    `due_at` is the time of the next request, in seconds on the monotonic clock. `scope` is the
    token scope that the request needs.
    """

    name: str
    scope: str
    interval_seconds: float
    due_at: float
    draw: Draw
    failures: int = 0
    is_refused: bool = False

    def record_success(self) -> None:
        if self.is_refused:
            log.info("switchgear: the console accepts %s again", self.name)
        self.failures, self.is_refused = 0, False
        self.due_at = time.monotonic() + poll_delay(self.interval_seconds, self.draw)

    def record_failure(self, error: RequestFailed, retry_after_seconds: float | None) -> None:
        """Schedule the next request after a backoff.

        A refusal by the console is logged only if it is the first since the last success.
        """
        self.failures += 1
        pause = failure_delay(self.failures, self.draw, error.status, retry_after_seconds)
        if error.status == 403:
            pause = poll_delay(REFUSED_SECONDS, self.draw)
        self.due_at = time.monotonic() + pause
        if error.status in REFUSAL_STATUSES and not self.is_refused:
            self.is_refused = True
            hint = ""
            if error.status == 403:
                hint = f": the token lacks the scope {self.scope}, or another team owns the service"
            log.warning("switchgear: the console rejected %s: %s%s", self.name, error.why, hint)


class CpuThrottle:
    """A limit for the CPU time of the current thread, kept by pauses. Not thread-safe."""

    def __init__(self) -> None:
        self._rested_at = 0.0

    def pause_seconds(self) -> float:
        """Return the seconds to pause now, in proportion to the CPU time since the last pause.

        Return 0.0 if that CPU time is at most `FREE_SECONDS`.
        """
        busy = time.thread_time() - self._rested_at
        if busy <= FREE_SECONDS:
            return 0.0
        self._rested_at = time.thread_time()
        return min(busy * PAUSE_FACTOR, MAX_PAUSE_SECONDS)
