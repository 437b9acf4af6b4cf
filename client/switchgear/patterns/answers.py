"""How a call with a fallback was answered: by itself, or by what stood in for it."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a call with a fallback gave.

    `source` is "call", the name of a hop, "cache" or "default". `is_partial` says that the answer
    may be stale or less than was asked for, and is to be shown as such: it is from a cache, a
    default or a hop that says so of itself, or something of the kind was met on the way to it.
    `causes` are the class and the shortened text of each failure before it, in order.
    """

    value: T = field(repr=False)
    source: str = "call"
    is_partial: bool = False
    causes: tuple[str, ...] = ()


_latest: ContextVar[Answer[Any] | tuple[Any] | None] = ContextVar("latest_answer", default=None)
_partials: ContextVar[int] = ContextVar("partial_answers", default=0)


def latest_answer() -> Answer[Any] | None:
    """How the last call with a fallback was answered that ended here, in this thread or task; not
    what a task or thread begun from here has met. None if there was none, or it raised."""
    latest = _latest.get()
    return Answer(latest[0]) if isinstance(latest, tuple) else latest


def answered(value: object) -> None:
    """A call gave `value` itself."""
    _latest.set((value,))


def unanswered() -> None:
    """A call raised, and nothing stood in."""
    _latest.set(None)


def told(answer: Answer[T]) -> Answer[T]:
    """A call was answered so, by itself or otherwise."""
    _latest.set(answer)
    if answer.is_partial:
        _partials.set(_partials.get() + 1)
    return answer


def partials() -> int:
    """So many partial answers were met here; who compares it before and after knows of a call
    whether it met one."""
    return _partials.get()
