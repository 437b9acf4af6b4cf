"""What became of the calls of one dependency since this process began. They only grow."""

import itertools
import threading
from collections.abc import Callable

NAMES = ("success", "failure", "timeout", "slow", "rejected", "fallback", "retry")
"""`success`, `failure` and `timeout` exclude each other; `slow` is a part of all three; the rest
comes beside."""


class Counters:
    """Safe to use from any thread: each name is a function that counts one more, without a lock.

    A breaker counts the first five, a retry the last, a fallback its own; all of one dependency
    share one of these.
    """

    __slots__ = (*NAMES, "_lock", "_looks")

    success: Callable[[], int]
    failure: Callable[[], int]
    timeout: Callable[[], int]
    slow: Callable[[], int]
    rejected: Callable[[], int]
    fallback: Callable[[], int]
    retry: Callable[[], int]
    _looks: int

    def __init__(self) -> None:
        self.after_fork()

    def counted(self) -> dict[str, int]:
        """All of them. Reading is counting, which is taken off again."""
        with self._lock:
            looks, self._looks = self._looks, self._looks + 1
            return {name: getattr(self, name)() - looks for name in NAMES}

    def after_fork(self) -> None:
        """In a child, count from nought."""
        self._lock = threading.RLock()
        self._looks = 0
        for name in NAMES:
            setattr(self, name, itertools.count().__next__)
