"""DNS lookups with a timeout, which the system's resolver lacks."""

import queue
import socket
import threading
from collections.abc import Callable

LOOKUP_SECONDS = 3.0

Resolve = Callable[[str, int], list[str]]
"""Function that returns the addresses of a host, best first, or raises OSError."""


class Unresolved(Exception):
    """The host's name can't be resolved at the moment."""


def resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def look_up(
    host: str, port: int, *, resolver: Resolve = resolve, seconds: float = LOOKUP_SECONDS
) -> list[str]:
    """Return the addresses of a host; raise :class:`Unresolved` if it has none in time.

    The lookup runs in a daemon thread, which a hanging resolver occupies after the timeout.
    """
    answers: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolver(host, port))
        except (OSError, UnicodeError, OverflowError):
            answers.put([])

    threading.Thread(target=ask, daemon=True, name="look-up").start()
    try:
        addresses = answers.get(timeout=seconds)
    except queue.Empty as empty:
        raise Unresolved(f"{host} could not be resolved within {seconds:g} s") from empty
    if not addresses:
        raise Unresolved(f"{host} could not be resolved")
    return addresses
