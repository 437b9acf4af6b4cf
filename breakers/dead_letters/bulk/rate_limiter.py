"""How fast letters leave: so many a second, with little made up for. Pure."""

from dataclasses import dataclass

MAX_CATCH_UP_SECONDS = 5.0
"""For so long a job may do nothing between two turns without becoming slower than asked for; of a
longer pause nothing is made up."""


@dataclass
class ReplayRateLimiter:
    """`due` is when the next may leave, in seconds since 1970: each puts it off by its share of a
    second (the generic cell rate algorithm)."""

    rate_per_second: float
    due: float

    def wait(self, at: float, most: int) -> float:
        """Seconds until the next may leave, if `most` leave at once."""
        is_old = at - self.due > MAX_CATCH_UP_SECONDS
        if is_old or self.due - at > (most + 1) / self.rate_per_second + MAX_CATCH_UP_SECONDS:
            self.due = at  # From before the clock was set back.
        return max(0.0, self.due - at)

    def left(self, count: int, at: float) -> None:
        """So many have left at this time."""
        self.due = max(self.due, at - MAX_CATCH_UP_SECONDS) + count / self.rate_per_second

    def at_once(self, most: int) -> int:
        """How many leave together: a quarter of a second's, one at least."""
        return max(1, min(most, int(self.rate_per_second / 4)))
