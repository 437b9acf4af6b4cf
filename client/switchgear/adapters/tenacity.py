"""Retries of tenacity, kept as ours are; needs `tenacity`.

    @outermost("core->oracle", policy.counters, stop=stop_after_attempt(3))
    def ask(): …

or, for a decorator that is there already, the parts: `retry=unless_refused(…)`,
`before_sleep=counted(…)`.
"""

from collections.abc import Callable
from typing import Any

from tenacity import RetryCallState, retry, retry_if_exception_type
from tenacity.retry import retry_base

from switchgear.adapters.outermost import Outermost, count_retry, is_counted, may_try_again
from switchgear.patterns.counters import Counters


def outermost(name: str, counters: Counters | None = None, **terms: Any) -> Outermost:
    """`tenacity.retry(**terms)` for calls of the dependency `name`: see :class:`Outermost`. What is
    refused is not tried again, and the last error is raised as it is, unless `reraise` is False."""
    given = terms.pop("retry", None) or retry_if_exception_type()
    terms = {"reraise": True, **terms, "retry": unless_refused(given)}
    return Outermost(retry(**terms), name, counters)


class unless_refused(retry_base):
    """What `given` says (any but an asynchronous one), but never for what was refused, was
    cancelled or is catastrophic, and not while another retry is around."""

    def __init__(self, given: Callable[[RetryCallState], Any]) -> None:
        self._given = given

    def __call__(self, retry_state: RetryCallState) -> bool:
        outcome = retry_state.outcome
        error = outcome.exception() if outcome is not None and outcome.failed else None
        if error is not None and not may_try_again(error):
            return False
        return bool(self._given(retry_state))


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
