"""What each thread and each task has entered and not left, of things that are shared and may be
entered again within themselves."""

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Optional

_Entry = tuple[object, Any, float | None, Optional["_Entry"]]
"""Who was entered, what it gave, when, and what was entered before it."""
_last: ContextVar[_Entry | None] = ContextVar("switchgear_entries", default=None)


def entered(who: object, given: Any, began: float | None) -> None:
    """Keep `given` until `who` is left in this context."""
    _last.set((who, given, began, _last.get()))


def left(who: object) -> tuple[Any, float | None] | None:
    """What was kept when `who` was entered last. None if that was in another context: each step of
    a generator may have its own."""
    above: list[_Entry] = []
    entry = _last.get()
    while entry is not None and entry[0] is not who:
        above.append(entry)
        entry = entry[3]
    if entry is None:
        return None
    rest = entry[3]
    for each in reversed(above):
        rest = (*each[:3], rest)
    _last.set(rest)
    return entry[1], entry[2]


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
