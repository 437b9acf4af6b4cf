"""Asking the database from the event loop: in threads of its own, and never waiting for long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, connection

THREADS = 8
AWAY = (TimeoutError, DatabaseError, InterfaceError)
"""What asking raises while the database is away, or does not answer in time."""

T = TypeVar("T")


class Desk:
    """A few threads that ask; whoever hangs there keeps nobody else waiting who asked in time."""

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="live")

    async def ask(self, question: Callable[[], T], seconds: float) -> T:
        """The answer; raises TimeoutError after `seconds`, and nobody hears a later answer."""
        loop = asyncio.get_running_loop()
        return await asyncio.wait_for(
            loop.run_in_executor(self._threads, _asked, question), timeout=seconds
        )

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _asked(question: Callable[[], T]) -> T:
    try:
        return question()
    finally:
        connection.close()  # Back to the pool, like a request's.
