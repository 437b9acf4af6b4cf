"""Answers of calls with a fallback, labeled with their source and completeness."""

import reprlib
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MAX_SHOWN_LENGTH = 100

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = MAX_SHOWN_LENGTH
"""Shortens values in the representation of an answer, since prompts may be long."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Generic[T]):
    """The value of a call with a fallback, and its label.

    `source` is "call", the name of a target, "cache" or "default". `is_partial` is True for an
    answer that may be stale or incomplete: one from a cache, a default or a partial target, or one
    that depends on such an answer. `causes` are the class and shortened text of each earlier
    failure, in order. `age_seconds` is the age of a cached answer, None if the cache does not
    report ages. The value of a stream is None, since the consumer received its items.
    """

    value: T
    source: str = "call"
    is_partial: bool = False
    causes: tuple[str, ...] = ()
    age_seconds: float | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        shown = _repr.repr(self.value)
        if len(shown) > MAX_SHOWN_LENGTH:
            shown = f"{shown[: MAX_SHOWN_LENGTH - 1]}…"
        causes = f", causes={self.causes!r}" if self.causes else ""
        age = "" if self.age_seconds is None else f", age_seconds={self.age_seconds:.1f}"
        label = f"source={self.source!r}, is_partial={self.is_partial}{causes}{age}"
        return f"Answer(value={shown}, {label})"


_latest: ContextVar[Answer[Any] | tuple[Any] | None] = ContextVar("latest_answer", default=None)
_partials: ContextVar[int] = ContextVar("partial_answers", default=0)
partial_count = _partials.get
"""Return the number of partial answers recorded in this context so far. A call depends on a partial
answer if the number grows while the call runs."""


def latest_answer() -> Answer[Any] | None:
    """Return the answer, with its label, of the last call with a fallback in this thread or task.

    Return None if there was no such call, or if it raised. Calls in threads and tasks started from
    here don't count.
    """
    latest = _latest.get()
    return Answer(latest[0]) if isinstance(latest, tuple) else latest


def record_value(value: object) -> None:
    """Record `value` as the latest answer, from a call that succeeded without its fallback."""
    _latest.set((value,))


def clear_answer() -> None:
    """Record that the latest call raised an error: :func:`latest_answer` returns None."""
    _latest.set(None)


def record_answer(answer: Answer[T]) -> Answer[T]:
    """Record `answer` as the latest one, count it if it is partial, and return it."""
    _latest.set(answer)
    if answer.is_partial:
        _partials.set(partial_count() + 1)
    return answer


def require_latest_answer() -> Answer[Any]:
    """Return the latest answer, after a call with a fallback that has just succeeded."""
    answer = latest_answer()
    assert answer is not None  # noqa: S101 - for the types: the call has left it.
    return answer


def raise_or_return(outcome: Answer[T] | BaseException) -> Answer[T]:
    """Return the outcome of a call if it is an answer; raise it if it is an error."""
    if isinstance(outcome, BaseException):
        clear_answer()
        raise outcome
    return outcome


class StreamLabel:
    """A context manager around each step of a stream with a fallback.

    At the end of each step it records the stream's label as the latest answer, or that the stream
    raised an error.
    """

    def __init__(self) -> None:
        self.answer: Answer[None] = Answer(None)
        self._before = 0

    def unwrap(self, answer: Answer[T]) -> T:
        """Store the label of `answer`, its fallback target, and return the stream in it."""
        self.answer = replace(answer, value=None)  # type: ignore[arg-type, assignment]
        return answer.value

    def __enter__(self) -> None:
        self._before = partial_count()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None and not isinstance(error, StopIteration | StopAsyncIteration):
            clear_answer()
            return
        if partial_count() != self._before and not self.answer.is_partial:
            self.answer = replace(self.answer, is_partial=True)
        record_answer(self.answer)
