"""Background threads with their own database connections, and calls with bounded waits."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

ABANDONED_SECONDS = 30.0  # An older call counts as hung; another one is started.
OWNER_NAME = "switchgear owner"
"""The `application_name` of migrations and backups, which `lock_holders` never terminates."""

T = TypeVar("T")


@contextmanager
def own_connection() -> Iterator[None]:
    """Context manager: use a database connection outside the pool in this thread, then close it."""
    wrapper = unpooled_connection()
    connections[DEFAULT_DB_ALIAS] = wrapper
    try:
        yield
    finally:
        wrapper.close()
        del connections[DEFAULT_DB_ALIAS]


def unpooled_connection() -> BaseDatabaseWrapper:
    """Return a new database connection outside the pool, which the caller closes."""
    wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
    options = {k: v for k, v in wrapper.settings_dict["OPTIONS"].items() if k != "pool"}
    wrapper.settings_dict = {**wrapper.settings_dict, "OPTIONS": options}
    return wrapper


class ReusedConnection:
    """A reusable database connection outside the pool, which saves the CPU of connecting.

    A dead connection is replaced. Concurrent uses get a connection each, of which one is kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: BaseDatabaseWrapper | None = None

    @contextmanager
    def use(self) -> Iterator[None]:
        """Context manager: use the connection in this thread; an error in the block closes it."""
        connection = self._take()
        connections[DEFAULT_DB_ALIAS] = connection
        try:
            yield
            self._put(connection)
        except BaseException:
            connection.close()
            raise
        finally:
            del connections[DEFAULT_DB_ALIAS]

    def close(self) -> None:
        """Close the database connection if it is idle; the next use reconnects."""
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

    def _put(self, connection: BaseDatabaseWrapper) -> None:
        with self._lock:
            spare, self._idle = self._idle, connection
        if spare is not None:
            spare.close()


def close_connection() -> None:
    """Close this thread's database connection after an error; the next query reconnects."""
    connections[DEFAULT_DB_ALIAS].close()


class BoundedCall(Generic[T]):
    """A function that is called in a background thread, for callers that wait at most `seconds`.

    Concurrent callers share one run and its result, so that a hanging peer costs one thread, not
    one per request. The thread uses the database connection `kept`, by default a new one.
    """

    def __init__(
        self, function: Callable[[], T], *, seconds: float, kept: ReusedConnection | None = None
    ) -> None:
        self._function = function
        self._seconds = seconds
        self._connect = own_connection if kept is None else kept.use
        self._lock = threading.Lock()
        self._future: Future[T] | None = None
        self._started_at = 0.0

    def result(self) -> T:
        """Return the function's result, or raise its error; raise TimeoutError if it takes long."""
        return self.begin()()

    def begin(self) -> Callable[[], T]:
        """Start the function in the background; return a function that waits for its result."""
        with self._lock:
            age = time.monotonic() - self._started_at
            if self._future is None or self._future.done() or age > ABANDONED_SECONDS:
                self._future, self._started_at = Future(), time.monotonic()
                threading.Thread(target=self._work, args=(self._future,), daemon=True).start()
            future, deadline = self._future, self._started_at + self._seconds
        return lambda: future.result(timeout=max(0.0, deadline - time.monotonic()))

    def _work(self, future: "Future[T]") -> None:
        try:
            with self._connect():
                result = self._function()
        except BaseException as error:
            future.set_exception(error)  # Raised again in the waiting thread.
        else:
            future.set_result(result)
