"""Classification of the outcomes of calls, for a circuit breaker."""

import concurrent.futures
from collections.abc import Callable
from typing import Any, Literal

from switchgear.failures.classification import is_catastrophic
from switchgear.failures.error_labels import is_client_error
from switchgear.journal import log_error
from switchgear.refusals import refusal_in

Outcome = Literal["good", "bad", "nothing"]


class OutcomeClassifier:
    """The rules of a :class:`~switchgear.patterns.breaker.Breaker` for success and failure."""

    def __init__(
        self,
        ignore: tuple[type[BaseException], ...],
        is_failure: Callable[[BaseException], bool] | None,
        is_failed_result: Callable[[Any], bool] | None,
    ) -> None:
        self._ignored: tuple[type[BaseException], ...] = (
            concurrent.futures.CancelledError,
            *ignore,
        )
        self._is_failure = is_failure
        self._is_failed_result = is_failed_result
        self.classifies_results = is_failed_result is not None

    def classify_error(self, error: BaseException) -> Outcome:
        if self._is_ignored(error):
            return "nothing"
        if self._is_failure is None:
            return "good" if self._is_response(error) else "bad"
        return "bad" if _evaluate_predicate(self._is_failure, error) else "good"

    def is_failed_result(self, value: Any) -> bool:
        return self._is_failed_result is not None and _evaluate_predicate(
            self._is_failed_result, value
        )

    def _is_ignored(self, error: BaseException) -> bool:
        """Return True for an outcome that is not counted; for a group, if no member is counted."""
        if isinstance(error, self._ignored) or refusal_in(error) is not None:
            return True
        if isinstance(error, BaseExceptionGroup):
            return all(self._is_ignored(each) for each in error.exceptions)
        return not isinstance(error, Exception)

    def _is_response(self, error: BaseException) -> bool:
        """Return True for an HTTP client error, and for a group without any failure."""
        if isinstance(error, BaseExceptionGroup):
            inside = error.exceptions
            return all(self._is_ignored(each) or self._is_response(each) for each in inside)
        return is_client_error(error) and not is_catastrophic(error)


def _evaluate_predicate(predicate: Callable[[Any], bool], argument: Any) -> bool:
    """Return the result of `predicate`; True, a failure, if it raises."""
    try:
        return bool(predicate(argument))
    except Exception:  # The caller must get the outcome of the call, not this error.
        log_error("%r could not say whether a call failed", predicate)
        return True
