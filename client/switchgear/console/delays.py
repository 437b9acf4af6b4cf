"""When to ask again, and in which way. Pure: time and chance are given.

A thousand clients whose console was away must not come back at one moment, so every wait is drawn
from a whole range, and none is a fixed time after what everybody saw.
"""

from collections.abc import Callable
from typing import Literal

from switchgear.clock import read_retry_after

Draw = Callable[[], float]
"""Gives a number, uniform in [0, 1), fresh at every call."""

FIRST_SECONDS, MAX_SECONDS = 2.0, 20.0
REFUSED_FIRST_SECONDS, REFUSED_MAX_SECONDS = 15.0, 60.0
"""For 401 and 403: somebody has to change a token first."""
MAX_RETRY_AFTER_SECONDS = 60.0
POLL_JITTER = 0.2
STREAM_FAILURES, HELD_FAILURES = 3, 2
"""So many in a row, while plain requests are answered, and another way is taken."""
RETRY_TOP_SECONDS = (120.0, 300.0)
MAX_RETRY_DOUBLINGS = 3

FollowMode = Literal["stream", "held", "poll"]


def backoff_delay(
    failures: int, draw: Draw, first_seconds: float = FIRST_SECONDS, most: float = MAX_SECONDS
) -> float:
    """Seconds to wait after so many failures in a row: full jitter, U(0, min(most, first·2ⁿ⁻¹))."""
    ceiling: float = first_seconds * 2 ** min(max(failures, 1) - 1, 16)
    return draw() * min(most, ceiling)


def failure_delay(
    failures: int,
    draw: Draw,
    status: int | None = None,
    parse_retry_after: float | None = None,
    hint_seconds: float | None = None,
) -> float:
    """As :func:`backoff`, slower if we were refused with `status`.

    `parse_retry_after`: not before we were told to come back; everybody was told the same, so some
    chance is added. `hint_seconds`: over a range that is no shorter than a stream's hint.
    """
    if status in (401, 403):
        pause = backoff_delay(failures, draw, REFUSED_FIRST_SECONDS, REFUSED_MAX_SECONDS)
    else:
        first = max(FIRST_SECONDS, min(hint_seconds or 0.0, MAX_SECONDS))
        pause = backoff_delay(failures, draw, first)
    return pause if parse_retry_after is None else parse_retry_after + pause


def parse_retry_after(text: str | None, now: float) -> float | None:
    """What :func:`switchgear.clock.read_retry_after` makes of it, at most 60."""
    seconds = read_retry_after(text, now)
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER_SECONDS)


def poll_delay(seconds: float, draw: Draw) -> float:
    """The time to the next poll: 20 % less or more."""
    return seconds * (1 + POLL_JITTER * (2 * draw() - 1))


class ModeSelector:
    """The ways to follow: the stream, else polls that are held, else plain ones.

    It steps down when a way does not carry although plain requests are answered, and tries the top
    again after some minutes. `top` is the best there may be.
    """

    def __init__(self, draw: Draw, top: FollowMode = "stream") -> None:
        self.mode: FollowMode = top
        self.failures = 0
        """In a row, of the present way."""
        self._draw = draw
        self._top = top
        self._retries = 0
        self._retry_at = 0.0

    def select(self, now: float) -> FollowMode:
        """The way to try now. `now` is seconds on a monotonic clock, as everywhere here."""
        if self.mode != self._top and now >= self._retry_at:
            self.mode, self.failures = self._top, 0
        return self.mode

    def record_success(self) -> None:
        """The present way has carried for a while."""
        self.failures = 0
        if self.mode == self._top:
            self._retries = 0

    def record_failure(self, now: float, *, for_good: bool = False) -> None:
        """The present way did not carry; `for_good` if there is no use in trying it again soon."""
        self.failures += 1
        if self.mode == "stream" and (for_good or self.failures >= STREAM_FAILURES):
            self._step_down("held", now)
        elif self.mode == "held" and (for_good or self.failures >= HELD_FAILURES):
            self._step_down("poll", now)

    def _step_down(self, rung: FollowMode, now: float) -> None:
        if self.mode == self._top:
            least, most = RETRY_TOP_SECONDS
            later = 2 ** min(self._retries, MAX_RETRY_DOUBLINGS)
            self._retry_at = now + (least + (most - least) * self._draw()) * later
            self._retries += 1
        self.mode, self.failures = rung, 0
