"""Retries by tenacity, counted like this library's own retries and never nested with them.

    @outermost("core->oracle", policy.counters, stop=stop_after_attempt(3))
    def ask(): …

For an existing decorator, use the parts: `retry=unless_refused(…)` and `before_sleep=counted(…)`.
"""

from collections.abc import Callable
from typing import Any

from tenacity import RetryCallState, Retrying, retry, retry_if_exception_type
from tenacity.retry import retry_base

from switchgear.adapters.outer_retry import (
    OuterRetry,
    count_retry,
    is_counted,
    may_retry,
    may_retry_result,
)
from switchgear.patterns.counters import Counters


def outermost(name: str, counters: Counters | None = None, **terms: Any) -> OuterRetry:
    """Return `tenacity.retry(**terms)`, counted for the dependency `name`. See :class:`OuterRetry`.

    Refusals are not retried. The last error is raised unchanged, unless `reraise` is False.
    """
    given = terms.pop("retry", None) or retry_if_exception_type()
    terms = {"reraise": True, **terms, "retry": unless_refused(given, is_outermost=True)}
    return OuterRetry(
        retry(**terms),
        name,
        counters,
        would_retry=lambda error: given(_make_state(error=error)),
        would_retry_result=lambda result: given(_make_state(result=result)),
    )


class unless_refused(retry_base):
    """A tenacity predicate like `given` that is False for outcomes which must not be retried.

    These are refusals, cancellations, catastrophic failures, and outcomes that an outer retry would
    retry. `given` must not be asynchronous. `is_outermost` is that of :func:`may_retry`.
    """

    def __init__(
        self, given: Callable[[RetryCallState], Any], *, is_outermost: bool = False
    ) -> None:
        self._given = given
        self._is_outermost = is_outermost

    def __call__(self, retry_state: RetryCallState) -> bool:
        outcome, is_outermost = retry_state.outcome, self._is_outermost
        if not self._given(retry_state):
            return False
        if outcome is None:
            return True
        error = outcome.exception()
        if error is not None:
            return may_retry(error, is_outermost=is_outermost)
        return may_retry_result(outcome.result(), is_outermost=is_outermost)


def _make_state(*, error: BaseException | None = None, result: object = None) -> RetryCallState:
    """Return a tenacity retry state of a call that raised `error`, or else returned `result`."""
    state = RetryCallState(Retrying(), None, (), {})
    if error is None:
        state.set_result(result)
    else:
        state.set_exception((type(error), error, error.__traceback__))
    return state


def counted(
    name: str, counters: Counters | None = None, then: Callable[[RetryCallState], Any] | None = None
) -> Callable[[RetryCallState], None]:
    """Return a `before_sleep` hook that counts each retry for the dependency `name`.

    It then calls `then`, another such hook.
    """

    def before_sleep(state: RetryCallState) -> None:
        if not is_counted():
            outcome = state.outcome
            error = outcome.exception() if outcome is not None and outcome.failed else None
            kind = "result" if error is None else type(error).__name__
            count_retry(name, counters, state.attempt_number, kind, state.upcoming_sleep)
        if then is not None:
            then(state)

    return before_sleep
