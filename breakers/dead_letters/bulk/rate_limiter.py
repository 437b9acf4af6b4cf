"""The rate limiter of bulk jobs. Pure."""

from dataclasses import dataclass

MAX_CATCH_UP_SECONDS = 5.0
"""Longest idle gap that the rate limiter makes up for."""


@dataclass
class ReplayRateLimiter:
    """A rate limiter of letter removals, by the generic cell rate algorithm.

    `due` is the time, in seconds since 1970, from which the next letter may be removed.
    """

    rate_per_second: float
    due: float

    def seconds_to_wait(self, at: float, most: int) -> float:
        """Return the seconds to wait, from the time `at`, before removing up to `most` letters."""
        is_old = at - self.due > MAX_CATCH_UP_SECONDS
        if is_old or self.due - at > (most + 1) / self.rate_per_second + MAX_CATCH_UP_SECONDS:
            self.due = at  # From before the clock was set back.
        return max(0.0, self.due - at)

    def record(self, count: int, at: float) -> None:
        """Record that `count` letters were removed at the time `at`."""
        self.due = max(self.due, at - MAX_CATCH_UP_SECONDS) + count / self.rate_per_second

    def batch_size(self, most: int) -> int:
        """Return how many letters to remove at once: a quarter second's worth, from 1 to `most`."""
        return max(1, min(most, int(self.rate_per_second / 4)))
