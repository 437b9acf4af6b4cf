"""Counters of a breaker and the figures derived from them. Pure.

`success`, `failure` and `timeout` are disjoint; their sum is the number of calls made, retries
included. `slow` is a subset of them. `rejected` calls were never made. `fallback` and `retry` count
additional events: each request and each retry is a call.
"""

from dataclasses import dataclass

COUNTERS = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")


@dataclass(frozen=True)
class BreakerCounts:
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
    def requests(self) -> int:
        """Requests of callers: calls without their retries."""
        return max(self.calls - self.retry, 0)

    @property
    def fallback_candidates(self) -> int:
        """Requests that may have ended in a fallback: calls without retries, and rejected ones."""
        return max(self.requests + self.rejected, self.fallback)

    @property
    def failure_share(self) -> float | None:
        return _share(self.failure + self.timeout, self.calls)

    @property
    def amplification(self) -> float | None:
        """Tries for each wish; 1 is no retry."""
        return _share(self.calls, self.requests)

    def share(self, name: str) -> float | None:
        """Return the share (0 to 1) of one counter in all calls made or rejected."""
        count: int = getattr(self, name)
        return _share(count, self.calls + self.rejected)


def _share(some: int, whole: int) -> float | None:
    return some / whole if whole else None
