"""One call that is tried again and again: what decides after each attempt. Sync and async share it,
as it never waits itself."""

import concurrent.futures
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from switchgear import journal
from switchgear.clock import read_date
from switchgear.failing.classes import Retried, is_catastrophic
from switchgear.failing.words import HOPELESS, header_of, is_told_to_stop, retry_after_of, words_of
from switchgear.patterns import attempts, limits
from switchgear.patterns.backoff import pause_seconds, spread_seconds, told_seconds
from switchgear.patterns.counters import Counters
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.refusals import refusal_in

NOTE = "switchgear: "
TOO_LONG = "context_length_exceeded"
EXHAUSTED_NOTED_EVERY_SECONDS = 10.0

Kinds = tuple[type[BaseException], ...] | Callable[[BaseException], bool] | None
"""Errors of these classes, or of which this is true; None for what the parameters say."""

CANCELLED = concurrent.futures.CancelledError


@dataclass(frozen=True, slots=True)
class RetryState:
    """What a hook is told before the pause: attempt `attempt` (from 1) of `name` has failed with
    `error`, or given `result`, `elapsed_seconds` after the first began; the next one begins in
    `wait_seconds`."""

    name: str
    attempt: int
    wait_seconds: float
    elapsed_seconds: float
    error: BaseException | None = None
    result: Any = None


class Rules(Protocol):
    """What a round asks of its retry."""

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
    draw: Callable[[], float]
    exhausted_at: float | None


class Round(attempts.Attempts):
    """The attempts of one call. `truncates` says that the next one is to be made with truncated
    arguments.

    :meth:`enter`, and after each attempt one of the `after_…`: they give the seconds to wait before
    the next one, or None if that was the last. At the end, :meth:`leave`.
    """

    number: int
    truncates = False
    _has_truncated = False

    def __init__(self, rules: Rules) -> None:
        self.number = 0
        self.owner = self.rules = rules
        self._began = rules.clock()
        if rules.budget is not None:
            rules.budget.called()

    @property
    def tried(self) -> int:
        """How many attempts there have been, with the present one."""
        return self.number + 1

    def enter(self) -> None:
        """What is done from here on is a part of it."""
        attempts.begin(self)

    def leave(self) -> None:
        """It is over. Again is nothing."""
        attempts.end(self)

    def after_error(self, error: BaseException) -> float | None:
        """The attempt ended with `error`, which is to be raised if this gives None."""
        if is_final(error):
            return None
        if not self._may(error, words_of(error)):
            return self._given_up(error, "no use")
        return self._pause(error, error, None)

    def after_result(self, result: object) -> float | None:
        """The attempt gave `result`, which is to be returned if this gives None."""
        asked = self.rules.retry_result
        if asked is None:
            return None
        self.truncates = False
        if not _true_of(asked, result):
            return None
        return self._pause(result, None, result)

    def after_answer(self, response: object) -> float | None:
        """As :meth:`after_result`, for an HTTP response: without a `retry_result`, its status
        decides."""
        if self.rules.retry_result is not None:
            return self.after_result(response)
        self.truncates = False
        parameters = self.rules.parameters
        words = words_of(response)
        if words & set(parameters.never) or not words & set(parameters.retry_on):
            return None
        return self._pause(response, None, response)

    def _may(self, error: BaseException, words: frozenset[str | int]) -> bool:
        rules = self.rules
        never, retry_on = rules.parameters.never, rules.parameters.retry_on
        self.truncates = False
        if TOO_LONG in words and TOO_LONG in retry_on and TOO_LONG not in never:
            # Before `never`, which has the status 400 that it comes with.
            self.truncates = rules.truncate is not None and not self._has_truncated
            self._has_truncated = True
            return self.truncates
        try:
            if words & HOPELESS or _is_of(error, rules.never, words, never):
                return False
            return _is_of(error, rules.retry_on, words, retry_on)
        except Exception:  # The caller shall get what the call raised, and not this.
            journal.complain("the retry %s could not say what to try again", rules.name)
            return False

    def _pause(self, outcome: object, error: BaseException | None, result: object) -> float | None:
        rules, parameters = self.rules, self.rules.parameters
        if self.tried >= parameters.attempts:
            return self._given_up(error, "attempts")
        sent_at = read_date(header_of(outcome, "date"))
        told = told_seconds(retry_after_of(outcome), time.time() if sent_at is None else sent_at)
        if self.truncates:
            wait = 0.0
        elif told is None:
            wait = pause_seconds(self.number, parameters, rules.draw)
        elif told > parameters.retry_after_max_seconds:
            return self._given_up(error, "retry_after")
        else:
            wait = spread_seconds(told, parameters, rules.draw)
        left = limits.left()
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
        limits.count_retry()
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
        seconds = self.rules.clock() - self._began
        with contextlib.suppress(Exception):  # Some errors take no attributes.
            error.switchgear_retried = Retried(self.tried, seconds, why)  # type: ignore[attr-defined]
        times = "attempt" if self.tried == 1 else "attempts"
        _say_on(error, f"{NOTE}{self.tried} {times} in {seconds:.1f} s, given up: {why}")
        return None

    def _note_exhausted(self) -> None:
        rules, now = self.rules, self.rules.clock()
        last = rules.exhausted_at
        if last is None or now - last >= EXHAUSTED_NOTED_EVERY_SECONDS:
            rules.exhausted_at = now
            journal.note("retry_budget_exhausted", rules.name, attempt=self.tried)


def _say_on(error: BaseException, note: str) -> None:
    """In the place of what was said before: one error may be raised again and again."""
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        notes[:] = [each for each in notes if not (isinstance(each, str) and each.startswith(NOTE))]
    with contextlib.suppress(Exception):  # Some errors take no attributes.
        error.add_note(note)


def is_final(error: BaseException) -> bool:
    """Never tried again, whatever anybody says: refusals, cancellation, and what must be stopped by
    a person. Of a group: all refused, or anything in it cancelled or to be stopped."""
    return _is_cancelled(error) or refusal_in(error) is not None or is_catastrophic(error)


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, ExceptionGroup):
        return any(_is_cancelled(each) for each in error.exceptions)
    is_stopped = isinstance(error, CANCELLED) or is_told_to_stop(error)
    return not isinstance(error, Exception) or is_stopped


def _true_of(asked: Callable[[Any], bool], result: object) -> bool:
    try:
        return bool(asked(result))
    except Exception:  # The caller shall get what the call gave, and not this.
        journal.complain("%r could not say whether to try again", asked)
        return False


def _is_of(
    error: BaseException,
    kinds: Kinds,
    words: frozenset[str | int],
    named: tuple[str | int, ...],
) -> bool:
    if kinds is None:
        return not words.isdisjoint(named)
    return isinstance(error, kinds) if isinstance(kinds, tuple) else bool(kinds(error))
