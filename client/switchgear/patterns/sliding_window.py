"""Sliding windows of the outcomes of calls, by count or by time."""

import itertools
import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from switchgear.patterns.parameters import BreakerParameters


class CallCounts(NamedTuple):
    """Numbers of calls, of failed calls and of slow calls; a call may be both failed and slow."""

    calls: int = 0
    failures: int = 0
    slow: int = 0

    def failure_rate(self) -> float:
        """Return the share of failed calls, 0.0 without calls."""
        return self.failures / self.calls if self.calls else 0.0

    def slow_rate(self) -> float:
        return self.slow / self.calls if self.calls else 0.0


class CountBasedWindow:
    """A window of the outcomes of the last `size` calls.

    It stores the positions of failures and slow calls only. `succeed` counts a fast success,
    without a lock; all other methods need one.
    """

    is_time_based = False
    ends = math.inf

    def __init__(self, size: int) -> None:
        self._size = size
        self._reads = self._others = 0
        self._failed: deque[int] = deque()
        self._slow: deque[int] = deque()
        self.succeed: Callable[[], int] = itertools.count().__next__

    def add(self, failed: bool, slow: bool) -> None:
        self._others += 1
        number = self._calls()
        if failed:
            self._failed.append(number)
        if slow:
            self._slow.append(number)
        self._slide(number)

    def get_counts(self) -> CallCounts:
        calls = self._calls()
        self._slide(calls)
        return CallCounts(min(calls, self._size), len(self._failed), len(self._slow))

    def _calls(self) -> int:
        """Return the number of all calls ever counted."""
        reads, self._reads = self._reads, self._reads + 1
        return self.succeed() - reads + self._others

    def _slide(self, calls: int) -> None:
        gone = calls - self._size
        for numbers in (self._failed, self._slow):
            while numbers and numbers[0] <= gone:
                numbers.popleft()


class TimeBasedWindow:
    """A window of the outcomes of calls in the last `seconds`, in buckets of one second.

    `succeed` counts a fast success, without a lock; the next :meth:`get_counts` adds the new
    successes to a bucket. Call :meth:`get_counts` before the first success counted after `ends`,
    the end of the current bucket.
    """

    is_time_based = True

    def __init__(self, seconds: int, clock: Callable[[], float]) -> None:
        self._elapsed = seconds
        self._clock = clock
        self._buckets: deque[list[int]] = deque()
        """For each second: its number, and its calls, failures and slow calls."""
        self._calls = self._failures = self._slow = 0
        self._reads = self._sorted = 0
        self.ends = -math.inf
        self.succeed: Callable[[], int] = itertools.count().__next__

    def add(self, failed: bool, slow: bool) -> None:
        self._slide()
        self._add_to_bucket(1, int(failed), int(slow))

    def get_counts(self) -> CallCounts:
        self._slide()
        return CallCounts(self._calls, self._failures, self._slow)

    def _slide(self) -> None:
        reads, self._reads = self._reads, self._reads + 1
        succeeded = self.succeed() - reads
        new, self._sorted = succeeded - self._sorted, succeeded
        if new and self._buckets:
            self._add_to_bucket(new, 0, 0)
            new = 0
        now = self._clock()
        if now >= self.ends:
            second = math.floor(now)
            self.ends = second + 1.0
            self._buckets.append([second, 0, 0, 0])
            while self._buckets[0][0] <= second - self._elapsed:
                _, calls, failures, slow = self._buckets.popleft()
                self._calls -= calls
                self._failures -= failures
                self._slow -= slow
        self._add_to_bucket(new, 0, 0)

    def _add_to_bucket(self, calls: int, failures: int, slow: int) -> None:
        bucket = self._buckets[-1]
        bucket[1] += calls
        bucket[2] += failures
        bucket[3] += slow
        self._calls += calls
        self._failures += failures
        self._slow += slow


SlidingWindow = CountBasedWindow | TimeBasedWindow


def make_window(parameters: BreakerParameters, clock: Callable[[], float]) -> SlidingWindow:
    """Return an empty window of outcomes, of the type and size in `parameters`."""
    if parameters.window_type == "time":
        return TimeBasedWindow(parameters.size, clock)
    return CountBasedWindow(parameters.size)
