"""Deadline of a request's writes, checked before each commit.

It stops a thread that still waits for the database from changing anything after the timeout.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from controlplane.core.errors import Unavailable

IN_SCOPE = "switchgear.deadline"
"""Key of the request's deadline in the ASGI scope."""

_ends: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def limit_writes(ends: float | None) -> Iterator[None]:
    """Context manager: set the deadline of the block's writes, in monotonic seconds, if any."""
    token = _ends.set(ends)
    try:
        yield
    finally:
        _ends.reset(token)


def check() -> None:
    """Raise :class:`Unavailable`, which rolls the transaction back, if the deadline has passed."""
    ends = _ends.get()
    if ends is not None and time.monotonic() > ends:
        raise Unavailable("This took too long and was rolled back. Nothing changed.")
