"""The rate limiter of replays. Pure."""

from dataclasses import dataclass

MAX_CATCH_UP_SECONDS = 5.0
"""Longest idle gap that the rate limiter makes up for."""


@dataclass
class ReplayRateLimiter:
    """A rate limiter by the generic cell rate algorithm.

    `due` is when the next letter may leave, in seconds since 1970.
    """

    rate_per_second: float
    due: float

    def seconds_to_wait(self, at: float, most: int) -> float:
        """Return the seconds until the next batch of up to `most` letters may leave."""
        is_old = at - self.due > MAX_CATCH_UP_SECONDS
        if is_old or self.due - at > (most + 1) / self.rate_per_second + MAX_CATCH_UP_SECONDS:
            self.due = at  # From before the clock was set back.
        return max(0.0, self.due - at)

    def record(self, count: int, at: float) -> None:
        """Record that `count` letters left at this time."""
        self.due = max(self.due, at - MAX_CATCH_UP_SECONDS) + count / self.rate_per_second

    def batch_size(self, most: int) -> int:
        """Return the batch size: the letters of a quarter of a second, between 1 and `most`."""
        return max(1, min(most, int(self.rate_per_second / 4)))
