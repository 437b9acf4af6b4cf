"""Database sessions that were terminated, and changes that run again after that."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection

P = ParamSpec("P")
T = TypeVar("T")


class SessionEnded(OperationalError):
    """The session was terminated before its commit, so nothing was changed.

    Raised by statements inside a transaction. The outcome of a failed commit is unknown.
    """

    nothing_changed = True


def retry_if_ended(change: Callable[P, T]) -> Callable[P, T]:
    """Run `change`, once more if its session is terminated before the commit.

    `change` is one transaction, and its commit hooks open none: else a change that was committed
    could be made twice. A process that stalls for half a second may lose its session to
    :mod:`controlplane.core.lock_holders`. Inside another transaction, the outermost one is retried
    instead.
    """

    @functools.wraps(change)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if connection.in_atomic_block:
            return change(*args, **kwargs)
        try:
            return change(*args, **kwargs)
        except SessionEnded:
            return change(*args, **kwargs)

    return run
