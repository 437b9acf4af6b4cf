"""The decision after each attempt of a retried call, shared by sync and async code."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from switchgear import journal
from switchgear.failures.classification import RetrySummary
from switchgear.failures.error_labels import NON_RETRYABLE_LABELS, error_labels
from switchgear.patterns import retried_calls, time_limits
from switchgear.patterns.argument_checks import evaluate_predicate
from switchgear.patterns.counters import Counters
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.retry_rules import (
    NOTE_PREFIX,
    ErrorKinds,
    backoff_seconds,
    is_final,
    iter_members,
    jitter_retry_after,
    matches_kinds,
    retry_after_seconds,
    set_note,
    status_error,
)
from switchgear.patterns.time_limits import Clock

QUESTION = "whether to retry"
CONTEXT_TOO_LONG = "context_length_exceeded"
BUDGET_NOTE_INTERVAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RetryState:
    """A retry about to be made: the argument of an `on_retry` hook, which runs before the pause.

    Attempt `attempt` (from 1) of the retry `name` failed with `error`, or returned `result`,
    `elapsed_seconds` after the first attempt began; the next one begins in `wait_seconds`.
    """

    name: str
    attempt: int
    wait_seconds: float
    elapsed_seconds: float
    error: BaseException | None = None
    result: Any = None


class RetrySettings(Protocol):
    """The attributes of `Retry` that `RetryCallState` reads."""

    name: str
    parameters: RetryParameters
    retry_on: ErrorKinds
    never: ErrorKinds
    retry_result: Callable[[Any], bool] | None
    truncate: Callable[..., Any] | None
    budget: RetryBudget | None
    counters: Counters | None
    on_retry: Callable[[RetryState], None] | None
    clock: Clock
    rng: Callable[[], float]
    exhausted_noted_at: float | None
    """Time of the last journal event about the exhausted budget."""


def is_budgeted(outer: retried_calls.RetriedCall | None, budget: RetryBudget) -> bool:
    """Return True if a retry around a call has recorded the call in `budget` already.

    `outer` is the innermost retried call around it.
    """
    around = retried_calls.iter_outward(outer)
    return any(
        isinstance(each, RetryCallState) and each.settings.budget is budget for each in around
    )


class RetryCallState(retried_calls.RetriedCall):
    """The state of one call under a retry, which decides after each attempt if another follows.

    Call :meth:`enter`, then one of the `after_…` methods after each attempt: each returns the
    seconds to wait before the next attempt, or None if this retry makes no further attempt. At the
    end, call :meth:`leave`. `truncates` is True if the next attempt needs truncated arguments.
    """

    number: int = 0
    truncates = False
    _has_truncated = False

    def __init__(
        self, settings: RetrySettings, outer: retried_calls.RetriedCall | None = None
    ) -> None:
        self.owner = self.settings = settings
        self.outer = outer
        self._began = now = settings.clock()
        budget = settings.budget
        if budget is not None and (outer is None or not is_budgeted(outer, budget)):
            budget.record_call(now if budget.clock is settings.clock else None)

    @property
    def label(self) -> str:
        return f"the retry {self.settings.name}"

    @property
    def attempt_number(self) -> int:
        """The number of the current attempt, from 1."""
        return self.number + 1

    @property
    def has_more(self) -> bool:
        return self.attempt_number < self.settings.parameters.attempts

    def enter(self) -> None:
        retried_calls.begin(self)

    def leave(self) -> None:
        retried_calls.end(self)

    def after_error(self, error: BaseException) -> float | None:
        """Return the seconds to wait after an attempt that raised `error`.

        Return None if no attempt follows: then raise the error.
        """
        if is_final(error):
            return None
        if not self._should_retry(error):
            return self._give_up(error, "not retryable")
        outer = retried_calls.find_retrying(self.outer, error)
        if outer is not None:
            self._add_note(error, f"not retried here; {outer.label} retries")
            return None
        return self._schedule(error, error, None)

    def after_result(self, result: object) -> float | None:
        """Return the seconds to wait after an attempt that returned `result`.

        Return None if no attempt follows: then return the result.
        """
        predicate = self.settings.retry_result
        self.truncates = False
        if predicate is None or not evaluate_predicate(predicate, result, QUESTION):
            return None
        if retried_calls.find_retrying_result(self.outer, result) is not None:
            return None
        return self._schedule(result, None, result)

    def after_response(self, response: object) -> float | None:
        """Like :meth:`after_result`, for an HTTP response.

        Without a `retry_result`, the HTTP status decides. The retry is left to an outer retry that
        would retry the response, or the error of its `raise_for_status`.
        """
        self.truncates = False
        predicate, parameters = self.settings.retry_result, self.settings.parameters
        if predicate is None:
            labels = error_labels(response)
            if labels & set(parameters.never) or not labels & set(parameters.retry_on):
                return None
        elif not evaluate_predicate(predicate, response, QUESTION):
            return None
        if self.outer is not None:
            error = status_error(response)
            if retried_calls.find_retrying_result(self.outer, response) is not None:
                return None
            if error is not None and retried_calls.find_retrying(self.outer, error) is not None:
                return None
        return self._schedule(response, None, response)

    def repeats_on(self, failure: BaseException | None) -> bool:
        return self._can_retry() and super().repeats_on(failure)

    def would_retry(self, error: BaseException) -> bool:
        try:
            return not is_final(error) and self._retries(error) and self._can_wait(error)
        except Exception:  # Like `after_error`, which also logs it.
            return False

    def would_retry_result(self, result: object) -> bool:
        predicate = self.settings.retry_result
        return (
            predicate is not None
            and evaluate_predicate(predicate, result, QUESTION)
            and self._can_wait(result)
        )

    def _can_wait(self, outcome: object) -> bool:
        requested = retry_after_seconds(outcome)
        is_too_long = (
            requested is not None and requested > self.settings.parameters.retry_after_max_seconds
        )
        return not is_too_long and self._can_retry()

    def _can_retry(self) -> bool:
        """Return True if the settings allow retries at all.

        This holds even while the budget is exhausted, so that inner retries don't retry instead.
        """
        budget = self.settings.budget
        is_allowed = budget is None or budget.rate > 0 or budget.per_second > 0
        return is_allowed and self.settings.parameters.attempts > 1

    def _should_retry(self, error: BaseException) -> bool:
        self.truncates = False
        try:
            if not self._retries(error):
                return False
        except Exception:  # The caller must get the error of the call, not this one.
            journal.log_error(
                "retry %s: the function that decides what to retry failed", self.settings.name
            )
            return False
        if self.settings.truncate is not None and any(map(self._is_too_long, iter_members(error))):
            self.truncates = self._has_truncated = True
        return True

    def _retries(self, error: BaseException, is_named: bool = False) -> bool:
        """Return True if the settings retry `error`; for a group, if they retry every member.

        `is_named` is True for a member of a group that itself matches `retry_on`.
        """
        settings, labels = self.settings, error_labels(error)
        if self._is_too_long(error, labels):
            # Before `never`, which contains the status 400 of such errors.
            return settings.truncate is not None and not self._has_truncated
        if labels & NON_RETRYABLE_LABELS or matches_kinds(
            error, settings.never, labels, settings.parameters.never
        ):
            return False
        is_named = is_named or matches_kinds(
            error, settings.retry_on, labels, settings.parameters.retry_on
        )
        if not isinstance(error, BaseExceptionGroup):
            return is_named
        return all(
            (is_named or not is_final(each)) and self._retries(each, is_named)
            for each in error.exceptions
        )

    def _is_too_long(self, error: object, labels: frozenset[str | int] | None = None) -> bool:
        parameters = self.settings.parameters
        if CONTEXT_TOO_LONG not in parameters.retry_on or CONTEXT_TOO_LONG in parameters.never:
            return False
        return CONTEXT_TOO_LONG in (error_labels(error) if labels is None else labels)

    def _schedule(
        self, outcome: object, error: BaseException | None, result: object
    ) -> float | None:
        settings, parameters = self.settings, self.settings.parameters
        if not self.has_more:
            return self._give_up(error, "attempts")
        requested = retry_after_seconds(outcome)
        if self.truncates:
            wait = 0.0
        elif requested is None:
            wait = backoff_seconds(self.number, parameters, settings.rng)
        elif requested > parameters.retry_after_max_seconds:
            return self._give_up(error, "retry_after")
        else:
            wait = jitter_retry_after(requested, parameters, settings.rng)
        left = time_limits.remaining_seconds()
        if left is not None and wait >= left:
            return self._give_up(error, "deadline")
        if settings.budget is not None and not settings.budget.take():
            now, last = settings.clock(), settings.exhausted_noted_at
            if last is None or now - last >= BUDGET_NOTE_INTERVAL_SECONDS:
                settings.exhausted_noted_at = now
                journal.record("retry_budget_exhausted", settings.name, attempt=self.attempt_number)
            return self._give_up(error, "budget")
        self._record_retry(wait, error, result)
        return wait

    def _record_retry(self, wait: float, error: BaseException | None, result: object) -> None:
        settings = self.settings
        kind = type(result if error is None else error).__name__
        if settings.counters is not None:
            settings.counters.retry()
        time_limits.count_retry()
        attempt = self.attempt_number
        journal.record(
            "call_retried", settings.name, attempt=attempt, wait_seconds=round(wait, 3), error=kind
        )
        if settings.on_retry is not None:
            elapsed = settings.clock() - self._began
            try:
                settings.on_retry(RetryState(settings.name, attempt, wait, elapsed, error, result))
            except Exception:  # A fault of the hook, which must not affect the caller.
                journal.log_error("a hook of the retry %s failed", settings.name)
        self.number += 1
        self.request_counts = None

    def _give_up(self, error: BaseException | None, why: str) -> float | None:
        """Return None, after noting on `error` the number of attempts and the reason to stop."""
        if error is None or (self.attempt_number == 1 and why in ("not retryable", "attempts")):
            return None
        seconds = self._add_note(error, f"gave up: {why}")
        with contextlib.suppress(Exception):  # Some errors take no attributes.
            error.switchgear_retried = RetrySummary(self.attempt_number, seconds, why)  # type: ignore[attr-defined]
        return None

    def _add_note(self, error: BaseException, end: str) -> float:
        """Add a note on the attempts to `error`; return the seconds since the first attempt."""
        seconds = self.settings.clock() - self._began
        times = "attempt" if self.attempt_number == 1 else "attempts"
        set_note(error, f"{NOTE_PREFIX}{self.attempt_number} {times} in {seconds:.1f} s, {end}")
        return seconds
