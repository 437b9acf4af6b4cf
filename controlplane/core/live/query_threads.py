"""Asking the database from the event loop: in threads of its own, and never waiting for long."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connection

from controlplane.core.errors import Unavailable

THREADS = 6
RETRY_AFTER_SECONDS = 2
AWAY = (TimeoutError, DatabaseError, InterfaceError)
"""Errors of queries while the database is down, or slow."""

T = TypeVar("T")


class Desk:
    """A small thread pool for queries, in which a hanging query delays no other caller.

    It accepts at most `most` queries at once, waiting ones included.
    """

    def __init__(self, threads: int = THREADS, most: float = math.inf) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="live")
        self._most = most
        self._asking = 0

    async def ask(self, question: Callable[[], T], seconds: float) -> T:
        """Return the result; raise TimeoutError after `seconds` and discard a later result.

        Raises :class:`Unavailable` above the limit of concurrent queries.
        """
        if self._asking >= self._most:
            said = "Too many ask at the same moment; try again."
            raise Unavailable(said, retry_after=RETRY_AFTER_SECONDS)
        loop = asyncio.get_running_loop()
        self._asking += 1
        try:
            asked = loop.run_in_executor(self._threads, _asked, question)
            return await asyncio.wait_for(asked, timeout=seconds)
        finally:
            self._asking -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _asked(question: Callable[[], T]) -> T:
    try:
        return question()
    finally:
        connection.close()  # Back to the pool, like a request's.
