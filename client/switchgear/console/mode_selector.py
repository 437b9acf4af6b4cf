"""The choice among stream, held polls and plain polls. Pure: time and randomness are passed in."""

from typing import Literal

from switchgear.console.timings import Draw

FollowMode = Literal["stream", "held", "poll"]

STREAM_FAILURES, HELD_FAILURES = 3, 2
"""Consecutive failures after which the next lower mode is used, while plain requests succeed."""
RETRY_TOP_SECONDS = (120.0, 300.0)
"""Range of the delay before the best mode is retried; doubled after each step down."""
MAX_RETRY_DOUBLINGS = 3


class ModeSelector:
    """A selector of the follow mode. From best to worst: stream, held (long) polls, plain polls.

    It selects the next worse mode when a mode fails although plain requests succeed, and after some
    minutes retries `top`, the best mode allowed.
    """

    def __init__(self, draw: Draw, top: FollowMode = "stream") -> None:
        self.mode: FollowMode = top
        self.failures = 0
        """Consecutive failures of the current mode."""
        self._draw = draw
        self._top = top
        self._retries = 0
        self._retry_at = 0.0

    def select(self, now: float) -> FollowMode:
        """Return how to fetch changes at `now` (monotonic seconds): `stream`, `held` or `poll`."""
        if self.mode != self._top and now >= self._retry_at:
            self.mode, self.failures = self._top, 0
        return self.mode

    def record_success(self) -> None:
        """Record that the current mode, stream or poll, works: reset its count of failures."""
        self.failures = 0
        if self.mode == self._top:
            self._retries = 0

    def record_failure(self, now: float, *, is_permanent: bool = False) -> None:
        """Record a failure of the current follow mode.

        If `is_permanent`, select the next mode at once.
        """
        self.failures += 1
        if self.mode == "stream" and (is_permanent or self.failures >= STREAM_FAILURES):
            self._step_down("held", now)
        elif self.mode == "held" and (is_permanent or self.failures >= HELD_FAILURES):
            self._step_down("poll", now)

    def _step_down(self, mode: FollowMode, now: float) -> None:
        if self.mode == self._top:
            least, most = RETRY_TOP_SECONDS
            later = 2 ** min(self._retries, MAX_RETRY_DOUBLINGS)
            self._retry_at = now + (least + (most - least) * self._draw()) * later
            self._retries += 1
        self.mode, self.failures = mode, 0
