"""Counters of a dependency's calls since the process began."""

import itertools
import threading
from collections.abc import Callable

COUNTER_NAMES = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")
"""`success`, `failure` and `timeout` exclude each other; `slow` is a part of all three."""


class Counters:
    """Counters for the calls of one dependency. They only grow. Safe to use from any thread.

    Each attribute is a function that increments its counter, without a lock. A breaker counts
    successes, failures, timeouts, slow and rejected calls, a retry its retries, a fallback the
    calls it answers. All patterns of one dependency share one object.
    """

    __slots__ = (*COUNTER_NAMES, "_lock", "_reads")

    success: Callable[[], int]
    failure: Callable[[], int]
    timeout: Callable[[], int]
    slow: Callable[[], int]
    rejected: Callable[[], int]
    fallback: Callable[[], int]
    retry: Callable[[], int]
    _reads: int

    def __init__(self) -> None:
        self.after_fork()

    def counted(self) -> dict[str, int]:
        """Return the values of all counters by name."""
        with self._lock:
            reads, self._reads = self._reads, self._reads + 1
            return {name: getattr(self, name)() - reads for name in COUNTER_NAMES}

    def after_fork(self) -> None:
        self._lock = threading.RLock()
        self._reads = 0
        for name in COUNTER_NAMES:
            setattr(self, name, itertools.count().__next__)
