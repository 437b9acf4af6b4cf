"""Thread pool that runs database queries for the event loop."""

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connection

from controlplane.core.errors import Unavailable

THREADS = 6
RETRY_AFTER_SECONDS = 2
DATABASE_ERRORS = (TimeoutError, DatabaseError, InterfaceError)
"""Errors of queries while the database is down or slow."""

T = TypeVar("T")


class QueryPool:
    """A small thread pool for queries; a hanging query does not delay its caller beyond a timeout.

    It accepts at most `most` queries at once, including queued ones.
    """

    def __init__(self, threads: int = THREADS, most: float = math.inf) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="live")
        self._most = most
        self._running = 0

    async def run(self, query: Callable[[], T], seconds: float) -> T:
        """Return the result of `query`, run in a thread; raise TimeoutError after `seconds`.

        Raises :class:`Unavailable` if the pool has reached its limit.
        """
        if self._running >= self._most:
            message = "Too many simultaneous requests. Try again."
            raise Unavailable(message, retry_after=RETRY_AFTER_SECONDS)
        loop = asyncio.get_running_loop()
        self._running += 1
        try:
            future = loop.run_in_executor(self._threads, _run_and_release, query)
            return await asyncio.wait_for(future, timeout=seconds)
        finally:
            self._running -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _run_and_release(query: Callable[[], T]) -> T:
    try:
        return query()
    finally:
        connection.close()  # Back to the pool, like a request's.
