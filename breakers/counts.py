"""Counters of a breaker and ratios derived from them.

Pure. `success`, `failure` and `timeout` are disjoint and add up to the calls made, retries
included. `slow` and `retry` count the slow ones and the retries among these calls. `rejected`
counts calls rejected by the breaker or bulkhead. `fallback` counts fallback answers.
"""

from dataclasses import dataclass

COUNTERS = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")


@dataclass(frozen=True)
class BreakerCounts:
    """Counters of a breaker, summed over a period."""

    success: int = 0
    failure: int = 0
    timeout: int = 0
    slow: int = 0
    rejected: int = 0
    fallback: int = 0
    retry: int = 0

    @property
    def calls(self) -> int:
        """Calls that were made, retries included."""
        return self.success + self.failure + self.timeout

    @property
    def requests(self) -> int:
        """Calls that were made, without retries."""
        return max(self.calls - self.retry, 0)

    @property
    def failure_share(self) -> float | None:
        return _ratio(self.failure + self.timeout, self.calls)

    @property
    def caller_failure_share(self) -> float | None:
        """Failed and rejected calls to all calls (0 to 1), as the callers experience it."""
        failed = self.failure + self.timeout + self.rejected
        return _ratio(failed, self.calls + self.rejected)

    @property
    def amplification(self) -> float | None:
        """Calls per request: 1 without retries, None without requests."""
        return _ratio(self.calls, self.requests)

    def share(self, name: str) -> float | None:
        """Return the ratio (0 to 1) of a counter to all calls, rejected ones included."""
        count: int = getattr(self, name)
        return _ratio(count, self.calls + self.rejected)


def _ratio(some: int, whole: int) -> float | None:
    return some / whole if whole else None
