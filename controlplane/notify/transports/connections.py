"""Database connections of sender threads.

A sender thread closes its connection before it calls another server; otherwise unresponsive servers
would use up the connections.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.core import threads

_of_thread = threading.local()


@contextmanager
def sender_connection() -> Iterator[None]:
    """Context manager for a sender thread: gives it a database connection of its own.

    Outgoing calls close it by :func:`release_connection`; the next query opens another.
    """
    with threads.own_connection():
        _of_thread.is_sender = True
        try:
            yield
        finally:
            _of_thread.is_sender = False


def release_connection() -> None:
    """Close the current thread's database connection if it is a sender thread."""
    if getattr(_of_thread, "is_sender", False):
        threads.close_connection()
