"""The moment after which the caller was told that nothing came of it.

Whoever refuses a request that takes too long can't stop its thread, which may be waiting for a
frozen database and go on when that thaws. So every write looks here last, before it commits.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from controlplane.core.errors import Unavailable

IN_SCOPE = "switchgear.deadline"
"""Where the ASGI scope carries it, from whoever will give up then."""

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
