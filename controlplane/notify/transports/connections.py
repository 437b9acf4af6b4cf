"""Database connections of sender threads, released during calls to other servers.

Otherwise unresponsive servers would use up the connections.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.core import threads

_of_thread = threading.local()


@contextmanager
def only_while_asking() -> Iterator[None]:
    """Give a sender thread a database connection of its own.

    Queries open it, and `let_go` closes it.
    """
    with threads.own_connection():
        _of_thread.is_sender = True
        try:
            yield
        finally:
            _of_thread.is_sender = False


def let_go() -> None:
    """Close a sender thread's connection before a call to another server.

    Does nothing in other threads.
    """
    if getattr(_of_thread, "is_sender", False):
        threads.close_connection()
