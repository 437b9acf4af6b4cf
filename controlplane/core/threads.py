"""Background threads with their own database connections and bounded waits."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

ABANDONED_SECONDS = 30.0  # A call older than this is considered hung, and another one is started.
OWNER_NAME = "switchgear owner"
"""The `application_name` of migrations and backups, which `lock_holders` never terminates."""

T = TypeVar("T")


@contextmanager
def own_connection() -> Iterator[None]:
    """Use a connection outside the pool in this thread, and close it at the end.

    An exhausted pool, or one full of dead connections, says nothing about the database.
    """
    wrapper = unpooled_connection()
    connections[DEFAULT_DB_ALIAS] = wrapper
    try:
        yield
    finally:
        wrapper.close()
        del connections[DEFAULT_DB_ALIAS]


def unpooled_connection() -> BaseDatabaseWrapper:
    """Open a database connection outside the pool; the caller closes it."""
    wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
    options = {k: v for k, v in wrapper.settings_dict["OPTIONS"].items() if k != "pool"}
    wrapper.settings_dict = {**wrapper.settings_dict, "OPTIONS": options}
    return wrapper


class KeptConnection:
    """A reusable database connection outside the pool.

    Connecting takes as much CPU as thirty small queries. A dead connection is replaced. Concurrent
    uses get one each, of which one is kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: BaseDatabaseWrapper | None = None

    @contextmanager
    def use(self) -> Iterator[None]:
        """Make it the connection of this thread until the block ends; an error closes it."""
        used = self._take()
        connections[DEFAULT_DB_ALIAS] = used
        try:
            yield
            self._put(used)
        except BaseException:
            used.close()
            raise
        finally:
            del connections[DEFAULT_DB_ALIAS]

    def close(self) -> None:
        """Close the connection if it is idle; the next use reconnects."""
        with self._lock:
            idle, self._idle = self._idle, None
        if idle is not None:
            idle.close()

    def _take(self) -> BaseDatabaseWrapper:
        with self._lock:
            idle, self._idle = self._idle, None
        if idle is not None and idle.connection is not None:
            if idle.is_usable():
                return idle
            idle.close()
        fresh = unpooled_connection()
        fresh.inc_thread_sharing()
        return fresh

    def _put(self, used: BaseDatabaseWrapper) -> None:
        with self._lock:
            spare, self._idle = self._idle, used
        if spare is not None:
            spare.close()


def forget_connection() -> None:
    """Close this thread's connection after an error; the next query reconnects."""
    connections[DEFAULT_DB_ALIAS].close()


class Bounded(Generic[T]):
    """A call with a bounded wait: callers never wait longer than `seconds`.

    It runs in a thread with its own database connection, a new one unless `kept` is given. Callers
    that arrive during a run share its result, so a hanging peer costs one thread, not one per
    request.
    """

    def __init__(
        self, ask: Callable[[], T], *, seconds: float, kept: KeptConnection | None = None
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._connect = own_connection if kept is None else kept.use
        self._lock = threading.Lock()
        self._asked: Future[T] | None = None
        self._asked_at = 0.0

    def answer(self) -> T:
        """Return the result or raise its error; raise TimeoutError if there is none in time."""
        return self.begin()()

    def begin(self) -> Callable[[], T]:
        """Start the call and return a function that waits for it; several can run at once."""
        with self._lock:
            age = time.monotonic() - self._asked_at
            if self._asked is None or self._asked.done() or age > ABANDONED_SECONDS:
                self._asked, self._asked_at = Future(), time.monotonic()
                threading.Thread(target=self._work, args=(self._asked,), daemon=True).start()
            future, deadline = self._asked, self._asked_at + self._seconds
        return lambda: future.result(timeout=max(0.0, deadline - time.monotonic()))

    def _work(self, future: "Future[T]") -> None:
        try:
            with self._connect():
                answer = self._ask()
        except BaseException as error:
            future.set_exception(error)  # Raised again in the waiting thread.
        else:
            future.set_result(answer)
