"""The decision after each attempt of a retried call. Sync and async code share it, since it never
waits itself."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from switchgear import journal
from switchgear.failures.classification import Retried
from switchgear.failures.error_labels import HOPELESS, words_of
from switchgear.patterns import retried_calls, time_limits
from switchgear.patterns.backoff import pause_seconds, spread_seconds
from switchgear.patterns.counters import Counters
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.retry_rules import (
    Kinds,
    is_final,
    is_one_of,
    is_true_of,
    members_of,
    status_error_of,
    told_by,
)

NOTE = "switchgear: "
TOO_LONG = "context_length_exceeded"
EXHAUSTED_NOTED_EVERY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RetryState:
    """The argument of a hook before the pause: attempt `attempt` (from 1) of `name` failed with
    `error`, or returned `result`, `elapsed_seconds` after the first one began; the next one begins
    in `wait_seconds`."""

    name: str
    attempt: int
    wait_seconds: float
    elapsed_seconds: float
    error: BaseException | None = None
    result: Any = None


class Rules(Protocol):
    """The settings of a retry, as its rounds read them."""

    name: str
    parameters: RetryParameters
    budget: RetryBudget | None
    counters: Counters | None
    retry_on: Kinds
    never: Kinds
    retry_result: Callable[[Any], bool] | None
    truncate: Callable[..., Any] | None
    on_retry: Callable[[RetryState], None] | None
    clock: Callable[[], float]
    rng: Callable[[], float]
    exhausted_at: float | None


def is_counted(before: retried_calls.Attempts | None, budget: RetryBudget) -> bool:
    """Return True if a retry from `before` outward has counted its call in the same budget."""
    around = retried_calls.outward(before)
    return any(isinstance(each, Round) and each.rules.budget is budget for each in around)


class Round(retried_calls.Attempts):
    """The attempts of one call. `truncates` is True if the next one needs truncated arguments.

    Call :meth:`enter`, then one of the `after_…` methods after each attempt: they return the
    seconds to wait before the next one, or None if that was the last or an outer retry takes over.
    At the end, call :meth:`leave`.
    """

    number: int = 0
    truncates = False
    _has_truncated = False

    def __init__(self, rules: Rules, before: retried_calls.Attempts | None = None) -> None:
        self.owner = self.rules = rules
        if before is not None:
            self.before = before
        self._began = now = rules.clock()
        budget = rules.budget
        if budget is not None and (before is None or not is_counted(before, budget)):
            budget.called(now if budget.clock is rules.clock else None)

    @property
    def label(self) -> str:
        """The name in the note on an error that is left to this retry."""
        return f"the retry {self.rules.name}"

    @property
    def tried(self) -> int:
        """Attempts so far, including the current one."""
        return self.number + 1

    @property
    def has_more(self) -> bool:
        """True if another attempt may follow this one."""
        return self.tried < self.rules.parameters.attempts

    def enter(self) -> None:
        """Make this the active retry in this context."""
        retried_calls.begin(self)

    def leave(self) -> None:
        """End this retry; a second call does nothing."""
        retried_calls.end(self)

    def after_error(self, error: BaseException) -> float | None:
        """Handle an attempt that raised `error`. If this returns None, raise it."""
        if is_final(error):
            return None
        if not self._may(error):
            return self._given_up(error, "no use")
        outer = retried_calls.retrying(self.before, error)
        if outer is not None:
            self._say(error, f"left to {outer.label}")
            return None
        return self._pause(error, error, None)

    def after_result(self, result: object) -> float | None:
        """Handle an attempt that returned `result`. If this returns None, return it."""
        asked = self.rules.retry_result
        self.truncates = False
        if asked is None or not is_true_of(asked, result):
            return None
        if retried_calls.retrying_result(self.before, result) is not None:
            return None
        return self._pause(result, None, result)

    def after_answer(self, response: object) -> float | None:
        """Like :meth:`after_result`, for an HTTP response: without a `retry_result`, its status
        decides. An outer retry is also asked about the error that `raise_for_status` would
        raise."""
        self.truncates = False
        asked, parameters = self.rules.retry_result, self.rules.parameters
        if asked is None:
            words = words_of(response)
            if words & set(parameters.never) or not words & set(parameters.retry_on):
                return None
        elif not is_true_of(asked, response):
            return None
        if self.before is not None:
            error = status_error_of(response)
            if retried_calls.retrying_result(self.before, response) is not None:
                return None
            if error is not None and retried_calls.retrying(self.before, error) is not None:
                return None
        return self._pause(response, None, response)

    def repeats_on(self, failure: BaseException | None) -> bool:
        """Return True if a request made here is repeated when it fails with `failure`; None stands
        for any failure."""
        return self._is_able() and super().repeats_on(failure)

    def would_retry(self, error: BaseException) -> bool:
        """Return True if it retries `error`, also on its last attempt: the earlier attempts were
        its retries of such an error."""
        try:
            return not is_final(error) and self._retries(error) and self._can_wait(error)
        except Exception:  # Like `after_error`, which also logs it.
            return False

    def would_retry_result(self, result: object) -> bool:
        """Return True if it retries a call that returns `result`."""
        asked = self.rules.retry_result
        return asked is not None and is_true_of(asked, result) and self._can_wait(result)

    def _can_wait(self, outcome: object) -> bool:
        told = told_by(outcome)
        is_too_long = told is not None and told > self.rules.parameters.retry_after_max_seconds
        return not is_too_long and self._is_able()

    def _is_able(self) -> bool:
        """Return False if it never retries. A budget that is spent for now does not matter here:
        inner layers must not add retries of their own then."""
        budget = self.rules.budget
        is_allowed = budget is None or budget.rate > 0 or budget.per_second > 0
        return is_allowed and self.rules.parameters.attempts > 1

    def _may(self, error: BaseException) -> bool:
        self.truncates = False
        try:
            if not self._retries(error):
                return False
        except Exception:  # The caller shall get what the call raised, and not this.
            journal.complain("the retry %s could not say what to try again", self.rules.name)
            return False
        if self.rules.truncate is not None and any(map(self._is_too_long, members_of(error))):
            self.truncates = self._has_truncated = True
        return True

    def _retries(self, error: BaseException, is_named: bool = False) -> bool:
        """Return True if the rules retry `error`; for a group, every member. `is_named`: the rules
        name the group that `error` is in."""
        rules, words = self.rules, words_of(error)
        if self._is_too_long(error, words):
            # Before `never`, which contains the status 400 of such errors.
            return rules.truncate is not None and not self._has_truncated
        if words & HOPELESS or is_one_of(error, rules.never, words, rules.parameters.never):
            return False
        is_named = is_named or is_one_of(error, rules.retry_on, words, rules.parameters.retry_on)
        if not isinstance(error, BaseExceptionGroup):
            return is_named
        return all(
            (is_named or not is_final(each)) and self._retries(each, is_named)
            for each in error.exceptions
        )

    def _is_too_long(self, error: object, words: frozenset[str | int] | None = None) -> bool:
        parameters = self.rules.parameters
        if TOO_LONG not in parameters.retry_on or TOO_LONG in parameters.never:
            return False
        return TOO_LONG in (words_of(error) if words is None else words)

    def _pause(self, outcome: object, error: BaseException | None, result: object) -> float | None:
        rules, parameters = self.rules, self.rules.parameters
        if not self.has_more:
            return self._given_up(error, "attempts")
        told = told_by(outcome)
        if self.truncates:
            wait = 0.0
        elif told is None:
            wait = pause_seconds(self.number, parameters, rules.rng)
        elif told > parameters.retry_after_max_seconds:
            return self._given_up(error, "retry_after")
        else:
            wait = spread_seconds(told, parameters, rules.rng)
        left = time_limits.left()
        if left is not None and wait >= left:
            return self._given_up(error, "deadline")
        if rules.budget is not None and not rules.budget.take():
            self._note_exhausted()
            return self._given_up(error, "budget")
        self._count(wait, error, result)
        return wait

    def _count(self, wait: float, error: BaseException | None, result: object) -> None:
        rules = self.rules
        kind = type(result if error is None else error).__name__
        if rules.counters is not None:
            rules.counters.retry()
        time_limits.count_retry()
        attempt = self.tried
        journal.note(
            "call_retried", rules.name, attempt=attempt, wait_seconds=round(wait, 3), error=kind
        )
        if rules.on_retry is not None:
            elapsed = rules.clock() - self._began
            try:
                rules.on_retry(RetryState(rules.name, attempt, wait, elapsed, error, result))
            except Exception:  # Somebody else's, and not the caller's business.
                journal.complain("a hook of the retry %s failed", rules.name)
        self.number += 1
        self.asked = None

    def _given_up(self, error: BaseException | None, why: str) -> float | None:
        """Say on `error` how often it was tried, and why not again."""
        if error is None or (self.tried == 1 and why in ("no use", "attempts")):
            return None
        seconds = self._say(error, f"given up: {why}")
        with contextlib.suppress(Exception):  # Some errors take no attributes.
            error.switchgear_retried = Retried(self.tried, seconds, why)  # type: ignore[attr-defined]
        return None

    def _say(self, error: BaseException, end: str) -> float:
        """Add the note of this round to `error`; return the seconds so far."""
        seconds = self.rules.clock() - self._began
        times = "attempt" if self.tried == 1 else "attempts"
        say_on(error, f"{NOTE}{self.tried} {times} in {seconds:.1f} s, {end}")
        return seconds

    def _note_exhausted(self) -> None:
        rules, now = self.rules, self.rules.clock()
        last = rules.exhausted_at
        if last is None or now - last >= EXHAUSTED_NOTED_EVERY_SECONDS:
            rules.exhausted_at = now
            journal.note("retry_budget_exhausted", rules.name, attempt=self.tried)


def say_on(error: BaseException, note: str) -> None:
    """Add `note`, replacing our previous one: an error object may be raised repeatedly."""
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        notes[:] = [each for each in notes if not (isinstance(each, str) and each.startswith(NOTE))]
    with contextlib.suppress(Exception):  # Some errors take no attributes.
        error.add_note(note)
