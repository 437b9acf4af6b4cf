"""The outcomes of attempts: classification as final or not, and `Retry-After`."""

import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from switchgear import journal
from switchgear.clock import parse_date
from switchgear.failures.classification import is_catastrophic
from switchgear.failures.error_labels import header_of, is_told_to_stop, retry_after_of
from switchgear.patterns.backoff import parse_retry_after
from switchgear.refusals import refusal_in

ErrorKinds = tuple[type[BaseException], ...] | Callable[[BaseException], bool] | None
"""Exception classes, or a predicate of errors; None to use the names in the parameters."""

CANCELLATIONS = concurrent.futures.CancelledError


def is_final(error: BaseException) -> bool:
    """Return True if `error` is never retried, whatever the rules say: a refusal, a cancellation or
    a catastrophic failure; a group if all members are refusals, or any is one of the others."""
    return _is_cancelled(error) or refusal_in(error) is not None or is_catastrophic(error)


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, ExceptionGroup):
        return any(_is_cancelled(each) for each in error.exceptions)
    is_stopped = isinstance(error, CANCELLATIONS) or is_told_to_stop(error)
    return not isinstance(error, Exception) or is_stopped


def evaluate_predicate(predicate: Callable[[Any], bool], result: object) -> bool:
    """Return the verdict of the predicate `predicate` on `result`; False, and a warning, if it
    raises."""
    try:
        return bool(predicate(result))
    except Exception:  # The caller must get the outcome of the call, not this error.
        journal.log_error("%r could not say whether to try again", predicate)
        return False


def matches_kinds(
    error: BaseException,
    kinds: ErrorKinds,
    words: frozenset[str | int],
    named: tuple[str | int, ...],
) -> bool:
    """Return True if `error`, with these `words`, is of one of `kinds`, or of `named` if `kinds` is
    None."""
    if kinds is None:
        return not words.isdisjoint(named)
    if isinstance(kinds, tuple):
        return isinstance(error, kinds)
    if isinstance(error, BaseExceptionGroup):
        # Few predicates expect a group, so they are called with its members, too.
        with contextlib.suppress(Exception):
            return bool(kinds(error))
        return False
    return bool(kinds(error))


def iter_members(outcome: object) -> Iterator[object]:
    """Return the errors of a group, including nested groups; else `outcome` itself."""
    if isinstance(outcome, BaseExceptionGroup):
        for each in outcome.exceptions:
            yield from iter_members(each)
    else:
        yield outcome


def retry_after_seconds(outcome: object) -> float | None:
    """Return the seconds that `Retry-After` asks for, the longest of a group; None without one."""
    found = []
    for each in iter_members(outcome):
        text = retry_after_of(each)
        if text is not None:
            sent_at = parse_date(header_of(each, "date"))
            found.append(parse_retry_after(text, time.time() if sent_at is None else sent_at))
    return max((each for each in found if each is not None), default=None)


def status_error(response: object) -> BaseException | None:
    """Return the error that `raise_for_status` raises for `response`, None if it raises none."""
    try:
        response.raise_for_status()  # type: ignore[attr-defined]
    except Exception as error:
        return error
    return None
