"""An adaptive concurrency limit by additive increase and multiplicative decrease (AIMD). Pure.

Calls are evaluated in windows. The limit decreases after a window whose calls took `tolerance`
times the baseline, or were too often rejected by the callee. It increases by half its square root
after any other window in which more than half of the limit was in use. The baseline is the tenth
percentile of the median durations of recent windows.

As `tolerance` times `backoff` is below 1, each decrease leads below the concurrency at which the
callee begins to queue calls. The baseline is then measured without a queue, so it can't creep up
under constant load.

The signals (in-flight calls, duration, drops), and the rule that an unused limit does not grow, are
those of Netflix' concurrency-limits.
"""

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

MIN_CALLS = 20
"""Minimum number of calls in a window; the current limit if that is higher."""
MIN_WINDOW_SECONDS = 0.1
MAX_DURATIONS = 500
"""Maximum number of durations stored for one window."""
BASELINE_WINDOWS = 100
NO_BETTER = 0.9
"""A decrease did not help if calls still take more than this share of their previous duration."""
MAX_IN_VAIN = 2
"""Consecutive decreases without effect after which the new duration becomes the baseline, since the
callee itself is slower."""


@dataclass(frozen=True, kw_only=True)
class LimitRange:
    """The initial value and the bounds of an adaptive limit, and the thresholds of a decrease.

    The limit is multiplied by `backoff` if calls take more than `tolerance` times the baseline, or
    if at least the share `overload_rate` of calls is rejected by the callee or times out.
    """

    initial: int
    min_limit: int
    max_limit: int
    tolerance: float = 1.7
    backoff: float = 0.5
    overload_rate: float = 0.1


class AdaptiveLimit:
    """The adaptive limit of concurrent calls to one callee. Not thread-safe."""

    def __init__(self, limits: LimitRange, now: float) -> None:
        self.limits = limits
        self.limit = float(limits.initial)
        self._medians: deque[float] = deque(maxlen=BASELINE_WINDOWS)
        self._decreased_at = -math.inf
        self._before_decrease: float | None = None
        """Median duration of the last window, if that window led to a decrease."""
        self._in_vain = 0
        self._is_searching = True
        """True while the callee is new or has changed: the limit decreases as long as calls get
        faster."""
        self._open_window(now)

    def _open_window(self, now: float) -> None:
        self._opened_at = now
        self._calls = self._overloads = self._max_in_flight = 0
        self._durations: list[float] = []

    def record(
        self, began: float, now: float, in_flight: int, seconds: float | None, is_overload: bool
    ) -> float:
        """Record a call from `began` to `now`, in seconds on one clock, and return the new limit.

        `in_flight` is the number of running calls, including this one. `seconds` is the latency
        from which the limit is computed; it is None if the duration of the call does not show the
        callee's latency, as for a stream. `is_overload` is True if the callee rejected the call or
        the call timed out.
        """
        if began < self._decreased_at:
            return self.limit  # It began under a higher limit: one overload lowers the limit once.
        self._calls += 1
        self._max_in_flight = max(self._max_in_flight, in_flight)
        if is_overload:
            self._overloads += 1
        elif seconds is not None and len(self._durations) < MAX_DURATIONS:
            self._durations.append(seconds)
        is_enough = self._calls >= max(MIN_CALLS, self.limit)
        if is_enough and now - self._opened_at >= MIN_WINDOW_SECONDS:
            self._close_window(now)
        return self.limit

    def _close_window(self, now: float) -> None:
        typical = median(self._durations) if self._durations else None
        is_slow = typical is not None and self._is_slow(typical)
        is_overloaded = self._overloads >= self.limits.overload_rate * self._calls
        # An unused limit had no influence on the calls.
        if self._max_in_flight > self.limit / 2:
            if is_slow or is_overloaded:
                self._decreased_at = now
                self._before_decrease = typical if is_slow else None
                self._set(self.limit * self.limits.backoff)
            else:
                self._set(self.limit + max(1.0, math.sqrt(self.limit) / 2))
        self._open_window(now)

    def _is_slow(self, typical: float) -> bool:
        """Return True if calls of a window took so long that the callee is overloaded.

        Adds `typical`, their median duration, to those that the baseline is computed from.
        """
        before, self._before_decrease = self._before_decrease, None
        if before is not None:
            self._in_vain = self._in_vain + 1 if typical > NO_BETTER * before else 0
        if self._in_vain == MAX_IN_VAIN:
            self._in_vain, self._is_searching = 0, False
            self._medians.clear()
        if not self._medians:
            self._medians.append(typical)
            return False
        self._medians.append(typical)
        baseline = sorted(self._medians)[len(self._medians) // 10]
        tolerance = self.limits.tolerance
        if typical * tolerance < baseline:
            self._is_searching = True
        return self._is_searching or typical > tolerance * baseline

    def _set(self, limit: float) -> None:
        self.limit = min(max(limit, self.limits.min_limit), self.limits.max_limit)
