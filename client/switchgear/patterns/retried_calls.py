"""The active retries around a call, innermost first, so that nested retries don't multiply.

Three nested retries of three attempts would make 27 calls. Therefore an inner retry leaves a
failure to an active outer retry that would retry it. The outer retry may be in another process: see
`propagation`.
"""

from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar


class RetriedCall:
    """One logical call in progress that a retry may repeat.

    `number` is that of the current attempt, from 0; None marks a boundary, an entry that hides all
    outer retries. `owner` is the retry; None for a retry in the calling service, which is assumed
    to retry every failure.
    """

    is_over = False
    """True after the end of the call: it no longer applies to tasks that outlive it."""
    is_last = False
    """True if no attempt follows this one."""
    repeats: bool | None = None
    """True if a request made here is repeated on failure; None to use :meth:`would_retry`."""
    outer: "RetriedCall | None" = None
    key: str | None = None
    """The idempotency key of the call, created on demand."""
    request_counts: "Counter[str] | None" = None
    """Numbers of requests of this attempt, by digest."""
    request_numbers: "dict[str, list[int]] | None" = None
    """By digest: numbers of these requests within the outer retry, the same in all attempts."""

    def __init__(self, number: int | None, owner: object = None) -> None:
        self.number = number
        self.owner = owner

    @property
    def label(self) -> str:
        """The name of this retry in notes on errors that are left to it."""
        return "the caller's retry"

    @property
    def has_more(self) -> bool:
        """True if this call may have another attempt after the current one."""
        return not self.is_last

    def repeats_on(self, failure: BaseException | None) -> bool:
        """Return True if this call will send its requests again after `failure`.

        None stands for any failure.
        """
        if self.repeats is not None:
            return self.repeats
        return failure is None or self.would_retry(failure)

    def would_retry(self, error: BaseException) -> bool:
        """Return True if this call retries errors like `error`, even if it has no attempt left."""
        return True

    def would_retry_result(self, result: object) -> bool:
        return True


_active: ContextVar[RetriedCall | None] = ContextVar("switchgear_attempts", default=None)


def find_innermost() -> RetriedCall | None:
    """Return the innermost retried call in this context that has not ended, or a boundary."""
    found = _active.get()
    return found if found is None else _skip_finished(found)


def find_active() -> RetriedCall | None:
    return next(iter_outward(_active.get()), None)


def iter_outward(start: RetriedCall | None) -> Iterator[RetriedCall]:
    """Yield `start` and the retried calls around it, up to a boundary or the client's own retry."""
    while (start := _skip_finished(start)) is not None and start.number is not None:
        yield start
        start = start.outer if start.owner is not None else None


def find_retrying(start: RetriedCall | None, error: BaseException) -> RetriedCall | None:
    """Return `start` or the next call around it that would retry `error`, None without one."""
    return next((each for each in iter_outward(start) if each.would_retry(error)), None)


def find_retrying_result(start: RetriedCall | None, result: object) -> RetriedCall | None:
    """Return `start` or the next call around it that would retry a call returning `result`."""
    return next((each for each in iter_outward(start) if each.would_retry_result(result)), None)


def begin(call: RetriedCall) -> None:
    """Record `call` as the innermost retried call in this context."""
    call.outer = find_innermost()
    _active.set(call)


enter = _active.set
"""Like :func:`begin`, for a call whose `outer` is already set to the innermost call."""


def end(call: RetriedCall) -> None:
    """Remove `call` from the retried calls of this context.

    In a context other than the one it began in, only mark the call as over.
    """
    call.is_over = True
    if _active.get() is call:
        _active.set(call.outer)


def end_here(call: RetriedCall) -> None:
    """Like :func:`end`, for plain functions, which end in the context in which they began."""
    call.is_over = True
    _active.set(call.outer)


def _skip_finished(found: RetriedCall | None) -> RetriedCall | None:
    while found is not None and found.is_over:
        found = found.outer
    return found
