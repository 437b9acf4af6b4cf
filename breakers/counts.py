"""What the counters of a breaker mean together. Pure.

`success`, `failure` and `timeout` exclude each other: together they are the calls that were made,
each try for itself. `slow` is some of them. `rejected` calls were never made, `fallback` and
`retry` say what was done beside: each wish of a caller is a call, and so is each retry.
"""

from dataclasses import dataclass

COUNTERS = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")


@dataclass(frozen=True)
class CallCounts:
    """Counters over some time."""

    success: int = 0
    failure: int = 0
    timeout: int = 0
    slow: int = 0
    rejected: int = 0
    fallback: int = 0
    retry: int = 0

    @property
    def calls(self) -> int:
        """Tries that reached the callee or ran out of time."""
        return self.success + self.failure + self.timeout

    @property
    def wishes(self) -> int:
        """What callers asked for: calls but for their repeats."""
        return max(self.calls - self.retry, 0)

    @property
    def asked(self) -> int:
        """What may have ended in a fallback: wishes, and what was turned away."""
        return max(self.wishes + self.rejected, self.fallback)

    @property
    def failure_share(self) -> float | None:
        return _share(self.failure + self.timeout, self.calls)

    @property
    def amplification(self) -> float | None:
        """Tries for each wish; 1 is no retry."""
        return _share(self.calls, self.wishes)

    def share(self, name: str) -> float | None:
        """Of one counter among all that was tried or turned away."""
        count: int = getattr(self, name)
        return _share(count, self.calls + self.rejected)


def _share(some: int, whole: int) -> float | None:
    return some / whole if whole else None
