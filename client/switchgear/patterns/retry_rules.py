"""The rules of retries: final outcomes, backoff, jitter and `Retry-After`. Pure."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError

from switchgear.clock import parse_date, parse_retry_after_header
from switchgear.failures.classification import is_catastrophic
from switchgear.failures.error_labels import is_stop_request, response_header, retry_after_header
from switchgear.patterns.parameters import RetryParameters
from switchgear.refusals import refusal_in

ErrorKinds = tuple[type[BaseException], ...] | Callable[[BaseException], bool] | None
"""Exception classes, or a predicate of errors; None to use the names in the parameters."""

NOTE_PREFIX = "switchgear: "
MAX_DOUBLINGS = 64
RETRY_AFTER_JITTER = 0.1
"""Maximum jitter of a `Retry-After`, as a share of its seconds (`base_seconds` if that is more)."""


def is_final(error: BaseException) -> bool:
    """Return True if `error` is never retried, whatever the settings of the retry.

    These are refusals, cancellations and catastrophic failures. An exception group is final if all
    members are refusals, or if any member is a cancellation or a catastrophic failure.
    """
    return _is_cancelled(error) or refusal_in(error) is not None or is_catastrophic(error)


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, ExceptionGroup):
        return any(_is_cancelled(each) for each in error.exceptions)
    is_stopped = isinstance(error, CancelledError) or is_stop_request(error)
    return not isinstance(error, Exception) or is_stopped


def matches_kinds(
    error: BaseException,
    kinds: ErrorKinds,
    labels: frozenset[str | int],
    named: tuple[str | int, ...],
) -> bool:
    """Return True if `error` matches `kinds`: exception classes, or a predicate.

    If `kinds` is None, return True if one of the error's `labels` is among those in `named`.
    """
    if kinds is None:
        return not labels.isdisjoint(named)
    if isinstance(kinds, tuple):
        return isinstance(error, kinds)
    if isinstance(error, BaseExceptionGroup):
        # Few predicates expect a group; its members are checked separately.
        with contextlib.suppress(Exception):
            return bool(kinds(error))
        return False
    return bool(kinds(error))


def iter_members(outcome: object) -> Iterator[object]:
    """Yield the errors of a group, including nested groups; any other outcome itself."""
    if isinstance(outcome, BaseExceptionGroup):
        for each in outcome.exceptions:
            yield from iter_members(each)
    else:
        yield outcome


def retry_after_seconds(outcome: object) -> float | None:
    """Return the seconds that the callee asks to wait by `Retry-After`; None without the header.

    Of a group of errors, return the longest.
    """
    found = []
    for each in iter_members(outcome):
        text = retry_after_header(each)
        if text is not None:
            sent_at = parse_date(response_header(each, "date"))
            found.append(parse_retry_after(text, time.time() if sent_at is None else sent_at))
    return max((each for each in found if each is not None), default=None)


def status_error(response: object) -> BaseException | None:
    """Return the error that `raise_for_status` raises for `response`, None if it raises none."""
    try:
        response.raise_for_status()  # type: ignore[attr-defined]
    except Exception as error:
        return error
    return None


def backoff_seconds(retries: int, parameters: RetryParameters, rng: Callable[[], float]) -> float:
    """Return the seconds to wait after `retries` earlier retries, with full jitter.

    U(0, min(cap, base·2ⁿ)), or U(0, min(cap, base·(n+1))) with a linear backoff; n is `retries`.
    """
    base = parameters.base_seconds
    if parameters.backoff == "linear":
        ceiling = base * (retries + 1)
    else:
        ceiling = base * 2.0 ** min(retries, MAX_DOUBLINGS)
    return rng() * min(parameters.cap_seconds, ceiling)


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds of a `Retry-After` header sent at `now`, None if it is invalid."""
    # Fractions are not valid HTTP, but some servers send them.
    if text is not None and re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", text):
        return float(text)
    return parse_retry_after_header(text, now)


def jitter_retry_after(
    requested: float, parameters: RetryParameters, rng: Callable[[], float]
) -> float:
    """Return `requested` seconds plus jitter, since all clients were asked to wait equally long."""
    least = min(parameters.base_seconds, parameters.cap_seconds)
    return requested + rng() * max(requested * RETRY_AFTER_JITTER, least)


def set_note(error: BaseException, note: str) -> None:
    """Add `note` to `error`, replacing an earlier note by a retry of this library."""
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        notes[:] = [
            each for each in notes if not (isinstance(each, str) and each.startswith(NOTE_PREFIX))
        ]
    with contextlib.suppress(Exception):  # Some errors take no attributes.
        error.add_note(note)
