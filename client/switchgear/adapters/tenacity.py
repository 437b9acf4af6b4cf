"""Retries of tenacity, counted like ours and never multiplied; needs `tenacity`.

    @outermost("core->oracle", policy.counters, stop=stop_after_attempt(3))
    def ask(): …

or, for a decorator that is there already, the parts: `retry=unless_refused(…)`,
`before_sleep=counted(…)`.
"""

from collections.abc import Callable
from typing import Any

from tenacity import RetryCallState, Retrying, retry, retry_if_exception_type
from tenacity.retry import retry_base

from switchgear.adapters.outermost import (
    Outermost,
    count_retry,
    is_counted,
    may_try_again,
    may_try_result_again,
)
from switchgear.patterns.counters import Counters


def outermost(name: str, counters: Counters | None = None, **terms: Any) -> Outermost:
    """`tenacity.retry(**terms)` for calls of the dependency `name`: see :class:`Outermost`.
    Refusals are not retried, and the last error is raised as it is, unless `reraise` is False."""
    given = terms.pop("retry", None) or retry_if_exception_type()
    terms = {"reraise": True, **terms, "retry": unless_refused(given, is_outermost=True)}
    return Outermost(
        retry(**terms),
        name,
        counters,
        would_retry=lambda error: given(_state(error=error)),
        would_retry_result=lambda result: given(_state(result=result)),
    )


class unless_refused(retry_base):
    """The predicate `given` (not an asynchronous one), restricted: False for refusals,
    cancellations and catastrophic failures, and for outcomes that an outer retry would retry."""

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
            return may_try_again(error, is_outermost=is_outermost)
        return may_try_result_again(outcome.result(), is_outermost=is_outermost)


def _state(*, error: BaseException | None = None, result: object = None) -> RetryCallState:
    """Return the retry state that tenacity passes to its predicates, for an outcome that it has not
    seen."""
    state = RetryCallState(Retrying(), None, (), {})
    if error is None:
        state.set_result(result)
    else:
        state.set_exception((type(error), error, error.__traceback__))
    return state


def counted(
    name: str,
    counters: Counters | None = None,
    then: Callable[[RetryCallState], Any] | None = None,
) -> Callable[[RetryCallState], None]:
    """A `before_sleep` that counts each retry for the dependency `name`, and calls `then`."""

    def before_sleep(state: RetryCallState) -> None:
        if not is_counted():
            outcome = state.outcome
            error = outcome.exception() if outcome is not None and outcome.failed else None
            kind = "result" if error is None else type(error).__name__
            count_retry(name, counters, state.attempt_number, kind, state.upcoming_sleep)
        if then is not None:
            then(state)

    return before_sleep
