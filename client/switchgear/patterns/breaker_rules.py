"""Rules of a circuit breaker: which outcomes are failures, when it opens, and for how long."""

from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Literal

from switchgear.failures.classification import is_catastrophic
from switchgear.failures.error_labels import is_client_error
from switchgear.patterns.argument_checks import evaluate_predicate
from switchgear.patterns.parameters import BreakerParameters
from switchgear.patterns.sliding_window import CallCounts
from switchgear.refusals import refusal_in

Outcome = Literal["good", "bad", "nothing"]


@dataclass(frozen=True)
class OutcomeClassifier:
    """The rules by which a breaker classifies errors and results as successes and failures."""

    ignored: tuple[type[BaseException], ...]
    is_failure: Callable[[BaseException], bool] | None
    result_predicate: Callable[[Any], bool] | None

    def classify_error(self, error: BaseException) -> Outcome:
        if self._is_ignored(error):
            return "nothing"
        if self.is_failure is None:
            return "good" if self._is_response(error) else "bad"
        return "bad" if _is_failed(self.is_failure, error) else "good"

    def is_failed_result(self, value: Any) -> bool:
        predicate = self.result_predicate
        return predicate is not None and _is_failed(predicate, value)

    def _is_ignored(self, error: BaseException) -> bool:
        """Return True for an error that is neither counted as a success nor as a failure.

        A group of errors is ignored if all its members are.
        """
        if isinstance(error, (CancelledError, *self.ignored)) or refusal_in(error) is not None:
            return True
        if isinstance(error, BaseExceptionGroup):
            return all(self._is_ignored(each) for each in error.exceptions)
        return not isinstance(error, Exception)

    def _is_response(self, error: BaseException) -> bool:
        """Return True if `error` shows that the callee has answered, which is not a failure.

        Then its HTTP status is 400 to 499, other than 408 and 429. For a group, return True if each
        of its errors reports such a status or is not counted.
        """
        if isinstance(error, BaseExceptionGroup):
            inside = error.exceptions
            return all(self._is_ignored(each) or self._is_response(each) for each in inside)
        return is_client_error(error) and not is_catastrophic(error)


def _is_failed(predicate: Callable[[Any], bool], outcome: object) -> bool:
    return evaluate_predicate(predicate, outcome, "whether a call failed", if_raised=True)


def open_cause(parameters: BreakerParameters, counts: CallCounts, consecutive: int) -> str | None:
    """Return the reason why these counts open a closed breaker; None if it stays closed.

    `consecutive` is the number of failures since the last success.
    """
    count = parameters.failure_count
    if count is not None:
        return f"failure_count {counts.failures} >= {count}" if counts.failures >= count else None
    if counts.calls < parameters.needed_calls:
        return None
    row = parameters.consecutive_failures
    if counts.failure_rate() >= parameters.failure_rate:
        return f"failure_rate {counts.failure_rate():.2f} >= {parameters.failure_rate:.2f}"
    if row is not None and consecutive >= row:
        return f"consecutive_failures {consecutive} >= {row}"
    if _is_too_slow(parameters, counts):
        return f"slow_call_rate {counts.slow_rate():.2f} >= {parameters.slow_call_rate:.2f}"
    return None


def reopen_cause(parameters: BreakerParameters, probes: CallCounts) -> str | None:
    """Return the reason why these probes reopen a half-open breaker; None if they close it."""
    rate = probes.failure_rate()
    if rate >= parameters.failure_rate:
        return f"probes: failure_rate {rate:.2f} >= {parameters.failure_rate:.2f}"
    if _is_too_slow(parameters, probes):
        slow = probes.slow_rate()
        return f"probes: slow_call_rate {slow:.2f} >= {parameters.slow_call_rate:.2f}"
    return None


def draw_open_seconds(parameters: BreakerParameters, reopened: int, drawn: float) -> float:
    """Return the seconds that a breaker stays open after reopening `reopened` times in a row.

    `drawn` is uniform in [0, 1). Capped times get jitter, too, so that a fleet doesn't probe at one
    moment.
    """
    most, jitter = parameters.open_max_seconds, parameters.open_jitter
    try:
        grown = parameters.open_seconds * float(parameters.open_multiplier) ** reopened
    except OverflowError:
        grown = most
    capped = min(grown, most)
    low, high = capped * (1 - jitter), min(capped * (1 + jitter), most)
    return low + (high - low) * drawn


def _is_too_slow(parameters: BreakerParameters, counts: CallCounts) -> bool:
    if parameters.slow_call_seconds is None:
        return False
    return counts.slow_rate() >= parameters.slow_call_rate
