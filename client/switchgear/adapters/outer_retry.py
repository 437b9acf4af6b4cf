"""Retries by other libraries, counted like this library's retries and never nested with them."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from switchgear import journal
from switchgear.decorators import is_coroutine_function, wrap_by_kind
from switchgear.patterns import retried_calls, time_limits
from switchgear.patterns.counters import Counters
from switchgear.patterns.retried_calls import RetriedCall
from switchgear.patterns.retry_rules import NOTE_PREFIX, is_final, set_note

F = TypeVar("F", bound=Callable[..., Any])


class OuterRetry:
    """A wrapper of another library's retry decorator, for calls of the dependency `name`.

    For errors that the other library retries, retries of this library inside the call are switched
    off, also in other processes. All attempts have one idempotency key. Each retry is counted when
    it begins.

    `decorate` is the other library's decorator, which must call :func:`may_retry` for each error.
    `would_retry` returns True for an error that the decorator retries, `would_retry_result` for a
    result that it retries. Without them it is assumed to retry every error and no result.
    """

    def __init__(
        self,
        decorate: Callable[[Any], Any],
        name: str,
        counters: Counters | None = None,
        *,
        would_retry: Callable[[BaseException], Any] | None = None,
        would_retry_result: Callable[[object], Any] | None = None,
    ) -> None:
        self.name = name
        self.counters = counters
        self.would_retry = would_retry
        self.would_retry_result = would_retry_result
        self._decorate = decorate

    def __call__(self, function: F) -> F:
        """Return `function` with the other library's retries around it.

        Raise :class:`TypeError` for a generator function.
        """
        return wrap_by_kind(
            function, plain=self._plain, coroutine=self._coroutine, generator=None, what="a retry"
        )

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        tried = self._decorate(self._counting(function))

        def call(*args: Any, **kwargs: Any) -> Any:
            marker = OuterRetryCall(self)
            retried_calls.begin(marker)
            try:
                return tried(*args, **kwargs)
            finally:
                retried_calls.end(marker)

        return call

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        tried = self._decorate(self._counting(function))

        async def call(*args: Any, **kwargs: Any) -> Any:
            marker = OuterRetryCall(self)
            retried_calls.begin(marker)
            try:
                return await tried(*args, **kwargs)
            finally:
                retried_calls.end(marker)

        return call

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of `function`, each call of which counts as one more attempt."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            _begin_attempt()
            try:
                return function(*args, **kwargs)
            except Exception as error:
                _record_failure(error)
                raise

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            _begin_attempt()
            try:
                return await function(*args, **kwargs)
            except Exception as error:
                _record_failure(error)
                raise

        return coroutine if is_coroutine_function(function) else call


class OuterRetryCall(RetriedCall):
    """One call that another library retries, listed among the retries that enclose running code."""

    def __init__(self, owner: OuterRetry) -> None:
        super().__init__(0, owner)
        self.retry = owner
        self.begun = 0
        self.failure = "result"
        """The class of the last error; `result` if a result was rejected."""

    @property
    def label(self) -> str:
        return f"the retry {self.retry.name}"

    def would_retry(self, error: BaseException) -> bool:
        if is_final(error):
            return False
        return _evaluate_predicate(self.retry.would_retry, error, default=True)

    def would_retry_result(self, result: object) -> bool:
        return _evaluate_predicate(self.retry.would_retry_result, result, default=False)


def may_retry(error: BaseException, *, is_outermost: bool = False) -> bool:
    """Return True if the retry that calls this function may retry `error`.

    Return False for refusals, cancellations and catastrophic failures. If an outer retry would
    retry the error, add a note to the error and return False. Pass `is_outermost` in the decorator
    of an :class:`OuterRetry`, which is then not taken for an outer retry of itself.
    """
    if is_final(error):
        return False
    outer = retried_calls.find_retrying(_find_outer(is_outermost), error)
    if outer is not None:
        set_note(error, f"{NOTE_PREFIX}not retried here; {outer.label} retries")
    return outer is None


def may_retry_result(result: object, *, is_outermost: bool = False) -> bool:
    """Return True if no outer retry would retry a call that returns `result`."""
    return retried_calls.find_retrying_result(_find_outer(is_outermost), result) is None


def count_retry(
    name: str, counters: Counters | None, attempt: int, error: str, seconds: float | None = None
) -> None:
    """Record that attempt number `attempt`, counted from 1, failed and is retried.

    `error` is the error's class; `seconds` is the pause before the retry, if known.
    """
    if counters is not None:
        counters.retry()
    time_limits.count_retry()
    waits = {} if seconds is None else {"wait_seconds": round(seconds, 3)}
    journal.record("call_retried", name, attempt=attempt, error=error, **waits)


def is_counted() -> bool:
    """Return True within a call whose attempts an :class:`OuterRetry` counts."""
    return isinstance(retried_calls.find_active(), OuterRetryCall)


def _begin_attempt() -> None:
    marker = retried_calls.find_active()
    if not isinstance(marker, OuterRetryCall) or not isinstance(marker.owner, OuterRetry):
        return
    if marker.begun:
        count_retry(marker.owner.name, marker.owner.counters, marker.begun, marker.failure)
    marker.number = marker.begun
    marker.request_counts = None
    marker.failure = "result"
    marker.begun += 1


def _record_failure(error: Exception) -> None:
    marker = retried_calls.find_active()
    if isinstance(marker, OuterRetryCall):
        marker.failure = type(error).__name__


def _find_outer(is_outermost: bool) -> RetriedCall | None:
    found = retried_calls.find_innermost()
    return found.outer if is_outermost and found is not None else found


def _evaluate_predicate(
    predicate: Callable[[Any], Any] | None, argument: object, *, default: bool
) -> bool:
    if predicate is None:
        return default
    try:
        return bool(predicate(argument))
    except Exception:  # The predicate may need state that only the library has.
        return default
