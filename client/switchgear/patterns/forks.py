"""Reset of patterns in a forked child.

Locks may be held by threads that the child does not have, and the counts are the parent's.
"""

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """An object that is reset in a forked child."""

    def after_fork(self) -> None:
        """Start anew in a child process, with new locks and without the parent's waiting calls."""
        ...


_all: dict[weakref.ReferenceType[ForkAware], None] = {}
"""Each change of it is a single step, so it takes no lock."""
_kept_alive: list[object] = []


def register(pattern: ForkAware) -> None:
    """Reset `pattern` in forked children, for as long as it exists."""
    _all[weakref.ref(pattern, _collected)] = None


def keep_alive(thing: object) -> None:
    """Keep an object of the parent, such as a lock, forever: releasing it might block."""
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
