"""A controller that adapts the limit of a bulkhead to the durations and errors of its calls."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError

from switchgear.evaluation.keys import Key
from switchgear.failures.error_labels import error_labels, http_status, is_timeout
from switchgear.patterns.adaptive_limit import AdaptiveLimit, LimitRange
from switchgear.patterns.permits import PermitPool
from switchgear.refusals import refusal_in

OVERLOAD_STATUSES = (429, 503, 529)
OVERLOAD_WORDS = frozenset({"rate_limit_exceeded", "model_overloaded"})


class LimitController:
    """Adapts the limit of a bulkhead, `permits`, to durations and errors of calls. Thread-safe."""

    def __init__(
        self, permits: PermitPool, limits: LimitRange, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._permits = permits
        self._clock = clock
        self._lock = threading.Lock()
        self._adaptive = AdaptiveLimit(limits, clock())

    def begin_call(self, permits: PermitPool) -> "MeasuredPermit":
        return MeasuredPermit(self, permits, self._clock())

    def record(self, began: float, is_timed: bool, outcome: object) -> None:
        """Record a call that started at `began` and ends now; `outcome` is its error or result.

        Refusals, cancellations and errors other than overload are ignored, and so is the duration
        of a call that is not `is_timed`.
        """
        is_overload = is_overload_outcome(outcome)
        if not is_overload and isinstance(outcome, BaseException):
            return
        now = self._clock()
        if not self._lock.acquire(blocking=False):
            return
        try:
            seconds = now - began if is_timed else None
            in_flight = self._permits.in_flight
            limit = self._adaptive.record(began, now, in_flight, seconds, is_overload)
            self._permits.resize(int(limit), self)
        finally:
            self._lock.release()


class MeasuredPermit:
    """A permit of an adaptive bulkhead, whose call is recorded for the limit, once.

    The call is recorded when it ends, at the latest when the permit is released.
    """

    __slots__ = ("_began", "_controller", "_is_recorded", "_permits", "is_timed")

    def __init__(self, controller: LimitController, permits: PermitPool, began: float) -> None:
        self._controller, self._permits, self._began = controller, permits, began
        self.is_timed = True
        self._is_recorded = False

    def record(self, outcome: object) -> None:
        """Record that the call has ended with `outcome`, unless its end was recorded before."""
        if not self._is_recorded:
            self._is_recorded = True
            self._controller.record(self._began, self.is_timed, outcome)

    def release(self, key: Key | None = None, outcome: object = None) -> None:
        """Release the permit, and record the call unless it was recorded before."""
        try:
            self.record(outcome)
        finally:
            self._permits.release(key)


def is_overload_outcome(outcome: object) -> bool:
    """Return True for a timeout, and for an error or response that reports an overloaded callee."""
    if outcome is None or isinstance(outcome, CancelledError):
        return False
    if not isinstance(outcome, BaseException):
        return http_status(outcome) in OVERLOAD_STATUSES
    if not isinstance(outcome, Exception) or refusal_in(outcome) is not None:
        return False
    return (
        is_timeout(outcome)
        or http_status(outcome) in OVERLOAD_STATUSES
        or not OVERLOAD_WORDS.isdisjoint(error_labels(outcome))
    )
