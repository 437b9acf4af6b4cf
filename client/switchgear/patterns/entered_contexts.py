"""The patterns' context managers that are entered and not yet left, per thread or task."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

MAX_DEPTH = 1000
"""Maximum nesting of entries. Beyond it, older entries are dropped."""


class _Entry:
    """One entered context manager, linked to the one entered before. Copied contexts share it."""

    __slots__ = ("depth", "is_over", "owner", "previous", "timer", "value")
    depth: int

    def __init__(self, owner: object, value: Any, timer: Any, previous: "_Entry | None") -> None:
        self.owner = owner
        self.value = value
        self.timer = timer
        self.previous = previous
        self.depth = 1 if previous is None else previous.depth + 1
        self.is_over = False


_last: ContextVar[_Entry | None] = ContextVar("switchgear_entries", default=None)


def push_entry(owner: object, value: Any, timer: Any) -> None:
    """Record that the context manager `owner` was entered in this thread or task.

    `value` and `timer` are returned to its exit by :func:`pop_entry`.
    """
    previous = _innermost_entry()
    if previous is not None and previous.depth >= MAX_DEPTH:
        previous = None
    _last.set(_Entry(owner, value, timer, previous))


def pop_entry(owner: object) -> tuple[Any, Any] | None:
    """Remove the last entry of the context manager `owner`, and return its value and timer.

    Return None if `owner` was entered in another context, as in an earlier step of a generator.
    """
    entry = _last.get()
    while entry is not None and (entry.is_over or entry.owner is not owner):
        entry = entry.previous
    if entry is None:
        return None
    entry.is_over = True
    popped = entry.value, entry.timer
    entry.owner = entry.value = entry.timer = None
    _last.set(_innermost_entry())
    return popped


def _innermost_entry() -> _Entry | None:
    entry = _last.get()
    while entry is not None and entry.is_over:
        entry = entry.previous
    return entry


class CallScope:
    """A context manager around one call, which begins and ends the call by two given functions.

    On entry it calls `begin()`, on exit `end(*begun, error)`: `begun` are the two results of
    `begin`, `error` is None after a success.
    """

    __slots__ = ("_begin", "_begun", "_end")

    def __init__(
        self,
        begin: Callable[[], tuple[Any, Any]],
        end: Callable[[Any, Any, BaseException | None], None],
    ) -> None:
        self._begin, self._end = begin, end

    def __enter__(self) -> None:
        self._begun = self._begin()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._end(*self._begun, error)
