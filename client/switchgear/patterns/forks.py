"""What patterns do in the child of a fork: locks may be held by threads that are not there, and
what was counted is the parent's."""

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    def after_fork(self) -> None:
        """In a child: begin anew, with new locks, waiting for nothing of the parent's."""
        ...


_all: dict[weakref.ReferenceType[ForkAware], None] = {}
"""Each change of it is one step, so it takes no lock."""
_kept_alive: list[object] = []


def register(pattern: ForkAware) -> None:
    """See to `pattern` for as long as somebody holds it."""
    _all[weakref.ref(pattern, _collected)] = None


def keep_alive(thing: object) -> None:
    """Keep for ever what was the parent's, such as a lock: to let go of it may be to wait."""
    _kept_alive.append(thing)


def _collected(ref: weakref.ReferenceType[ForkAware]) -> None:
    _all.pop(ref, None)


def _after_fork_in_child() -> None:
    for ref in list(_all):
        pattern = ref()
        if pattern is not None:
            pattern.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
