"""Errors of database sessions that were terminated, and the retry of their transactions."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection

from controlplane.core.database_errors import TERMINATED, find_sqlstate

P = ParamSpec("P")
T = TypeVar("T")


class SessionEnded(OperationalError):
    """The database session was terminated before the commit: nothing was changed."""

    nothing_changed = True


@contextlib.contextmanager
def convert_termination() -> Iterator[None]:
    """Context manager: raise SessionEnded if a statement's session was terminated before it.

    For statements of a transaction and its COMMIT. PostgreSQL answers a COMMIT that it has carried
    out before it terminates the session.
    """
    try:
        yield
    except OperationalError as error:
        if find_sqlstate(error) != TERMINATED:
            raise
        raise SessionEnded(*error.args) from error.__cause__


def retry_if_ended(change: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run once more if its database session ends before the commit.

    :mod:`controlplane.database.lock_holders` may terminate the session of a process that stalls for
    half a second. `change` must be one transaction without further transactions in its commit
    hooks, or a committed change could be made twice. A call inside a transaction is not retried.
    """

    @functools.wraps(change)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if not connection.in_atomic_block:
            with contextlib.suppress(SessionEnded):
                return change(*args, **kwargs)
        return change(*args, **kwargs)

    return run
