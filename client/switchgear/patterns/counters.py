"""What became of the calls of one dependency since this process began. They only grow."""

import itertools
import threading
from collections.abc import Callable

COUNTER_NAMES = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")
"""`success`, `failure` and `timeout` exclude each other; `slow` is a part of all three; the rest
comes beside."""


class Counters:
    """Safe to use from any thread: each name is a function that counts one more, without a lock.

    A breaker counts the first five, a retry the last, a fallback its own; all of one dependency
    share one of these.
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
        """All of them. Reading is counting, which is taken off again."""
        with self._lock:
            reads, self._reads = self._reads, self._reads + 1
            return {name: getattr(self, name)() - reads for name in COUNTER_NAMES}

    def after_fork(self) -> None:
        """In a child, count from nought."""
        self._lock = threading.RLock()
        self._reads = 0
        for name in COUNTER_NAMES:
            setattr(self, name, itertools.count().__next__)
