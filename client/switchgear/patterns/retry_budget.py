"""A limit of the retries of a dependency: a share of its calls, plus a number per second.

Without a budget, three attempts each triple the load when everything fails.
"""

import itertools
import threading
import time
from collections.abc import Callable

from switchgear.patterns import forks

WINDOW_SECONDS = 10


class RetryBudget:
    """A limit of retries: `rate` per call, plus `per_second`, over ten seconds. Thread-safe."""

    def __init__(
        self,
        rate: float = 0.2,
        per_second: float = 10.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.configure(rate, per_second)
        self.after_fork()
        forks.register(self)

    def after_fork(self) -> None:
        self._lock = threading.RLock()
        # Atomic, so counting takes no lock.
        self._count = itertools.count().__next__
        self._reads = 0
        self._second: int | None = None
        self._calls_before: dict[int, int] = {}
        """Number of calls before each second began."""
        self._retries: dict[int, int] = {}

    def configure(self, rate: float, per_second: float) -> None:
        self.rate = rate
        self.per_second = per_second

    def record_call(self, now: float | None = None) -> None:
        """Record the start of a call, whose attempts count as one.

        `now` is the current time by `clock`, if the caller has read it.
        """
        second = int(self.clock() if now is None else now)
        if second != self._second:
            self._start_second(second)
        self._count()

    def take(self) -> bool:
        """Count one retry and return True; return False if the budget is spent."""
        second = int(self.clock())
        with self._lock:
            spent = sum(n for at, n in self._retries.items() if at > second - WINDOW_SECONDS)
            earned = self.rate * self._calls(second) + self.per_second * WINDOW_SECONDS
            # 5 calls at 0.2 earn 1.0, not 0.9999…
            if spent + 1 > earned + 1e-9 * max(earned, 1.0):
                return False
            self._start_second(second)
            self._retries[second] = self._retries.get(second, 0) + 1
            return True

    def _calls(self, second: int) -> int:
        """Return the number of calls recorded in the last ten seconds."""
        reads, self._reads = self._reads, self._reads + 1
        total = self._count() - reads
        first = min(
            (at for s, at in self._calls_before.items() if s > second - WINDOW_SECONDS),
            default=total,
        )
        return total - first

    def _start_second(self, second: int) -> None:
        """Store the number of calls before `second`, and drop the counts of old seconds."""
        with self._lock:
            if second == self._second:
                return
            reads, self._reads = self._reads, self._reads + 1
            self._calls_before[second] = self._count() - reads
            self._second = second
            for counts in (self._calls_before, self._retries):
                for old in [each for each in counts if each <= second - WINDOW_SECONDS]:
                    del counts[old]
