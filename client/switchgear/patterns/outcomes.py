"""The outcomes of attempts: which of them are final, and what they say of waiting."""

import concurrent.futures
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from switchgear import journal
from switchgear.clock import read_date
from switchgear.failing.classes import is_catastrophic
from switchgear.failing.words import header_of, is_told_to_stop, retry_after_of
from switchgear.patterns.backoff import told_seconds
from switchgear.refusals import refusal_in

Kinds = tuple[type[BaseException], ...] | Callable[[BaseException], bool] | None
"""Errors of these classes, or of which this is true; None for what the parameters say."""

CANCELLED = concurrent.futures.CancelledError


def is_final(error: BaseException) -> bool:
    """Whether `error` is never retried, whatever the rules say: a refusal, a cancellation, and what
    must be stopped by a person. Of a group: all refused, or anything cancelled or to be stopped."""
    return _is_cancelled(error) or refusal_in(error) is not None or is_catastrophic(error)


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, ExceptionGroup):
        return any(_is_cancelled(each) for each in error.exceptions)
    is_stopped = isinstance(error, CANCELLED) or is_told_to_stop(error)
    return not isinstance(error, Exception) or is_stopped


def is_true_of(asked: Callable[[Any], bool], result: object) -> bool:
    """What `asked` says of `result`; False, and a complaint, if it raises."""
    try:
        return bool(asked(result))
    except Exception:  # The caller shall get what the call gave, and not this.
        journal.complain("%r could not say whether to try again", asked)
        return False


def is_one_of(
    error: BaseException,
    kinds: Kinds,
    words: frozenset[str | int],
    named: tuple[str | int, ...],
) -> bool:
    """Whether `error`, which has these `words`, is of these `kinds`, or without any is `named`."""
    if kinds is None:
        return not words.isdisjoint(named)
    if isinstance(kinds, tuple):
        return isinstance(error, kinds)
    if isinstance(error, BaseExceptionGroup):
        # Few functions expect a group; they are asked about its members, too.
        with contextlib.suppress(Exception):
            return bool(kinds(error))
        return False
    return bool(kinds(error))


def members_of(outcome: object) -> Iterator[object]:
    """The errors in a group, also in groups within; else `outcome` itself."""
    if isinstance(outcome, BaseExceptionGroup):
        for each in outcome.exceptions:
            yield from members_of(each)
    else:
        yield outcome


def told_by(outcome: object) -> float | None:
    """Seconds that `Retry-After` asks for, the longest of a group; None if it says nothing."""
    found = []
    for each in members_of(outcome):
        text = retry_after_of(each)
        if text is not None:
            sent_at = read_date(header_of(each, "date"))
            found.append(told_seconds(text, time.time() if sent_at is None else sent_at))
    return max((each for each in found if each is not None), default=None)


def status_error_of(response: object) -> BaseException | None:
    """The error that `raise_for_status` raises for it, None if it raises none."""
    try:
        response.raise_for_status()  # type: ignore[attr-defined]
    except Exception as error:
        return error
    return None
