"""Answers and their labels: the source of each, and whether it is partial."""

import reprlib
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MAX_SHOWN_LENGTH = 100

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = MAX_SHOWN_LENGTH
"""Prompts and their answers may be long, and should not fill the log."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Generic[T]):
    """The value of a call with a fallback, and its label.

    `source` is "call", the name of a target, "cache" or "default". `is_partial` says that the
    answer may be stale or less than was asked for, and is to be shown as such: it comes from a
    cache, a default or a target marked as partial, or depends on an answer that does. `causes` are
    the class and the shortened text of each failure before it, in order. `age_seconds` is the age
    of a cached answer, None if its cache does not report it. The value of a stream is None, since
    its items went to the consumer.
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


def latest_answer() -> Answer[Any] | None:
    """How the last call with a fallback was answered that ended here, in this thread or task; not
    what a task or thread begun from here has met. None if there was none, or it raised."""
    latest = _latest.get()
    return Answer(latest[0]) if isinstance(latest, tuple) else latest


def record_value(value: object) -> None:
    """A call gave `value` itself."""
    _latest.set((value,))


def clear_answer() -> None:
    """A call raised, and nothing stood in."""
    _latest.set(None)


def record_answer(answer: Answer[T]) -> Answer[T]:
    """A call was answered so, by itself or otherwise."""
    _latest.set(answer)
    if answer.is_partial:
        _partials.set(_partials.get() + 1)
    return answer


class StreamLabel:
    """Context manager around each step of a stream that sets its label for `latest_answer`."""

    def __init__(self) -> None:
        self.answer: Answer[None] = Answer(None)
        self._before = 0

    def unwrap(self, answer: Answer[T]) -> T:
        """Store the label of `answer`, and return the stream that is its value."""
        self.answer = replace(answer, value=None)  # type: ignore[arg-type, assignment]
        return answer.value

    def __enter__(self) -> None:
        self._before = partial_count()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, StopIteration | StopAsyncIteration):
            clear_answer()
            return
        if partial_count() != self._before and not self.answer.is_partial:
            self.answer = replace(self.answer, is_partial=True)
        record_answer(self.answer)


def partial_count() -> int:
    """So many partial answers were met here; who compares it before and after knows of a call
    whether it met one."""
    return _partials.get()
