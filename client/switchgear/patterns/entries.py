"""What each thread and each task has entered and not left, of things that are shared and may be
entered again within themselves."""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

DEEPEST = 1000
"""Nobody is inside of so many: what is kept then was left where it can't be found."""


class _Entry:
    """Who was entered, what it gave, when, and what was entered `before` it. Contexts that are
    copied share it: what is left in one of them is over in all."""

    __slots__ = ("before", "began", "depth", "given", "is_over", "who")
    depth: int

    def __init__(
        self, who: object, given: Any, began: float | None, before: "_Entry | None"
    ) -> None:
        self.who = who
        self.given = given
        self.began = began
        self.before = before
        self.depth = 1 if before is None else before.depth + 1
        self.is_over = False


_last: ContextVar[_Entry | None] = ContextVar("switchgear_entries", default=None)


def entered(who: object, given: Any, began: float | None) -> None:
    """Keep `given` until `who` is left in this context."""
    before = _innermost()
    if before is not None and before.depth >= DEEPEST:
        before = None
    _last.set(_Entry(who, given, began, before))


def left(who: object) -> tuple[Any, float | None] | None:
    """What was kept when `who` was entered last. None if that was in another context: each step of
    a generator may have its own."""
    entry = _last.get()
    while entry is not None and (entry.is_over or entry.who is not who):
        entry = entry.before
    if entry is None:
        return None
    entry.is_over = True
    found = entry.given, entry.began
    entry.who = entry.given = None
    _last.set(_innermost())
    return found


def _innermost() -> _Entry | None:
    entry = _last.get()
    while entry is not None and entry.is_over:
        entry = entry.before
    return entry


class Passage:
    """One call: `begin` says what it is given, and when; `end` gets both, and the error."""

    __slots__ = ("_begin", "_begun", "_end")

    def __init__(
        self,
        begin: Callable[[], tuple[Any, float | None]],
        end: Callable[[Any, float | None, BaseException | None], None],
    ) -> None:
        self._begin, self._end = begin, end

    def __enter__(self) -> None:
        self._begun = self._begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(*self._begun, error)
