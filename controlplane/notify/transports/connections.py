"""A sender's database connection: there while it asks something, gone while it waits for others.

Held during calls to somebody else's server, connections would be used up by servers that hang.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.core import threads

_of_thread = threading.local()


@contextmanager
def only_while_asking() -> Iterator[None]:
    """For a sender's thread: a connection of its own, which `let_go` closes; a query opens it."""
    with threads.own_connection():
        _of_thread.is_sender = True
        try:
            yield
        finally:
            _of_thread.is_sender = False


def let_go() -> None:
    """Before every call to another server. Does nothing in any other thread than a sender's."""
    if getattr(_of_thread, "is_sender", False):
        threads.forget_connection()
