"""The deadline after which a request was answered as failed.

A request that times out leaves its thread running: it may wait for a frozen database and continue
later. So each write checks the deadline last, before it commits.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from controlplane.core.errors import Unavailable

IN_SCOPE = "switchgear.deadline"
"""Key in the ASGI scope for the request's deadline."""

_ends: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def until(ends: float | None) -> Iterator[None]:
    """Set a deadline for writes in this context, in monotonic seconds; None means no deadline."""
    token = _ends.set(ends)
    try:
        yield
    finally:
        _ends.reset(token)


def check() -> None:
    """Raise :class:`Unavailable`, which undoes the transaction, if the deadline has passed."""
    ends = _ends.get()
    if ends is not None and time.monotonic() > ends:
        raise Unavailable("This took too long and was taken back; nothing was changed.")
