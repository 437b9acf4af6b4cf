"""What each thread and each task has entered and not left, of things that are shared and may be
entered again within themselves."""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any

DEEPEST = 1000
"""Nobody is inside of so many: what is kept then was left where it can't be found."""


class _Entry:
    """An entered object, the value its entry returned, the timer of that call, and the entry
    `before`. Copied contexts share it: an entry left in one of them is over in all."""

    __slots__ = ("before", "depth", "given", "is_over", "timer", "who")
    depth: int

    def __init__(self, who: object, given: Any, timer: Any, before: "_Entry | None") -> None:
        self.who = who
        self.given = given
        self.timer = timer
        self.before = before
        self.depth = 1 if before is None else before.depth + 1
        self.is_over = False


_last: ContextVar[_Entry | None] = ContextVar("switchgear_entries", default=None)


def entered(who: object, given: Any, timer: Any) -> None:
    """Keep `given` and `timer` until `who` is left in this context."""
    before = _innermost()
    if before is not None and before.depth >= DEEPEST:
        before = None
    _last.set(_Entry(who, given, timer, before))


def left(who: object) -> tuple[Any, Any] | None:
    """Return the value and timer of the last entry of `who`. None if it was in another context,
    which each step of a generator may run in."""
    entry = _last.get()
    while entry is not None and (entry.is_over or entry.who is not who):
        entry = entry.before
    if entry is None:
        return None
    entry.is_over = True
    found = entry.given, entry.timer
    entry.who = entry.given = entry.timer = None
    _last.set(_innermost())
    return found


def _innermost() -> _Entry | None:
    entry = _last.get()
    while entry is not None and entry.is_over:
        entry = entry.before
    return entry


class Passage:
    """A context manager for one call: `end` gets what `begin` returned, and the error."""

    __slots__ = ("_begin", "_begun", "_end")

    def __init__(
        self,
        begin: Callable[[], tuple[Any, Any]],
        end: Callable[[Any, Any, BaseException | None], None],
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
