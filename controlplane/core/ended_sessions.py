"""Database sessions terminated by PostgreSQL, and the retry of their transactions."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection

P = ParamSpec("P")
T = TypeVar("T")


class SessionEnded(OperationalError):
    """Raised if the session was terminated before the commit, so that nothing was changed.

    Only statements inside a transaction raise it: the outcome of a failed commit is unknown.
    """

    nothing_changed = True


def retry_if_ended(change: Callable[P, T]) -> Callable[P, T]:
    """Decorate a change to run once more if its session is terminated before the commit.

    `change` must be one transaction without further transactions in its commit hooks: otherwise a
    committed change could be made twice. A process that stalls for half a second may lose its
    session to :mod:`controlplane.core.lock_holders`. A call inside
    another transaction is not retried.
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
