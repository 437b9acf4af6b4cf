"""Reset of patterns in a forked child, where locks may stay locked and counts are the parent's."""

import os
import weakref
from typing import Protocol


class ForkAware(Protocol):
    def after_fork(self) -> None:
        """Reset this pattern in a forked child: new locks, no waiting calls, no counts."""


_all: dict[weakref.ReferenceType[ForkAware], None] = {}
"""Registered objects. Each change is a single step, so no lock is needed."""
_kept_alive: list[object] = []


def register(pattern: ForkAware) -> None:
    """Have `pattern.after_fork` called in forked children, for as long as `pattern` exists."""
    _all[weakref.ref(pattern, lambda ref: _all.pop(ref, None))] = None


def keep_alive(thing: object) -> None:
    """Keep an object of the parent, such as a lock, forever: to destroy it might block."""
    _kept_alive.append(thing)


def _after_fork_in_child() -> None:
    for ref in list(_all):
        if (pattern := ref()) is not None:
            pattern.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
