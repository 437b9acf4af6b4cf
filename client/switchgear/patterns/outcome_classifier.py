"""What the end of a call says of whom it was for."""

import concurrent.futures
from collections.abc import Callable
from typing import Any, Literal

from switchgear.failures.classification import is_catastrophic
from switchgear.failures.error_labels import is_client_error
from switchgear.journal import complain
from switchgear.refusals import refusal_in

Verdict = Literal["good", "bad", "nothing"]


class Verdicts:
    """See :class:`~switchgear.patterns.breaker.Breaker` for the parameters."""

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
        self.judge_results = is_failed_result is not None

    def of_error(self, error: BaseException) -> Verdict:
        if self._says_nothing(error):
            return "nothing"
        if self._is_failure is None:
            return "good" if self._is_answer(error) else "bad"
        return "bad" if _says(self._is_failure, error) else "good"

    def is_bad_result(self, value: Any) -> bool:
        return self._is_failed_result is not None and _says(self._is_failed_result, value)

    def _says_nothing(self, error: BaseException) -> bool:
        """Of a group: if that is so of all in it."""
        if isinstance(error, self._ignored) or refusal_in(error) is not None:
            return True
        if isinstance(error, BaseExceptionGroup):
            return all(self._says_nothing(each) for each in error.exceptions)
        return not isinstance(error, Exception)

    def _is_answer(self, error: BaseException) -> bool:
        """Return True for an HTTP client error, and for a group without any failure."""
        if isinstance(error, BaseExceptionGroup):
            inside = error.exceptions
            return all(self._says_nothing(each) or self._is_answer(each) for each in inside)
        return is_client_error(error) and not is_catastrophic(error)


def _says(asked: Callable[[Any], bool], about: Any) -> bool:
    """Return True for a failure, and if the predicate `asked` raises."""
    try:
        return bool(asked(about))
    except Exception:  # The caller shall get what the call gave, and not this.
        complain("%r could not say whether a call failed", asked)
        return True
