"""Database connections of sender threads, closed during calls to other servers.

Otherwise unresponsive servers would use up the connections.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.core import threads

_of_thread = threading.local()


@contextmanager
def only_while_asking() -> Iterator[None]:
    """Give this sender thread a connection of its own, which :func:`let_go` closes."""
    with threads.own_connection():
        _of_thread.is_sender = True
        try:
            yield
        finally:
            _of_thread.is_sender = False


def let_go() -> None:
    """In a sender's thread, close its database connection before a call to another server."""
    if getattr(_of_thread, "is_sender", False):
        threads.close_connection()
