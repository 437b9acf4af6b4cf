"""Thread pool that sends messages to many destinations, in the order in which they were queued.

Destinations whose last call was slow get at most half of the threads, so that unresponsive servers
can't occupy the pool. A thread holds a database connection only during queries.
"""

import threading
import time
from collections import deque
from collections.abc import Callable

import structlog

from controlplane.core import threads
from controlplane.core.database_errors import is_away
from controlplane.notify.transports import connections

MAX_THREADS = 16
MAX_FOR_SLOW = MAX_THREADS // 2
SLOW_SECONDS = 3.0
MAX_WAIT_SECONDS = 2.0
"""Longest wait for a rate limit; after a longer one, a later run continues."""

Send = Callable[[str], float | None]
"""Sends one message; returns the seconds until the next may be sent, None if none is due."""

log = structlog.get_logger(__name__)


class SenderPool:
    """The sender threads of this process, at most one per destination."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._served: set[str] = set()
        self._waiting: deque[str] = deque()
        self._slow: set[str] = set()
        self._ending = threading.Event()

    def serve(self, destination: str) -> bool:
        """Queue a destination; return False if it is already queued or served, or on shutdown."""
        with self._lock:
            known = destination in self._served or destination in self._waiting
            if known or self._ending.is_set():
                return False
            self._waiting.append(destination)
            if len(self._threads) < MAX_THREADS and self._next() is not None:
                thread = threading.Thread(target=self._run, daemon=True, name="outbox:sender")
                thread.start()
                self._threads.add(thread)
        return True

    def is_busy(self) -> bool:
        with self._lock:
            return bool(self._threads)

    def finish(self, seconds: float) -> bool:
        """End all threads after their current messages; return True if done within `seconds`."""
        ends = time.monotonic() + seconds
        self._ending.set()
        with self._lock:
            self._waiting.clear()
            running = list(self._threads)
        for thread in running:
            thread.join(max(0.0, ends - time.monotonic()))
        return not any(thread.is_alive() for thread in running)

    def _run(self) -> None:
        try:
            with connections.sender_connection():
                while (destination := self._take()) is not None:
                    self._serve(destination)
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _serve(self, destination: str) -> None:
        has_more = False
        try:
            has_more = self._turn(destination)
        except Exception as error:
            threads.close_connection()
            if is_away(error):
                log.warning("outbox.postponed", destination=destination, error=str(error).strip())
            else:
                log.exception("outbox.sender_failed", destination=destination)
        finally:
            with self._lock:
                self._served.discard(destination)
                if has_more and not self._ending.is_set():
                    self._waiting.append(destination)

    def _take(self) -> str | None:
        with self._lock:
            destination = None if self._ending.is_set() else self._next()
            if destination is None:
                self._threads.discard(threading.current_thread())
                return None
            self._waiting.remove(destination)
            self._served.add(destination)
            return destination

    def _next(self) -> str | None:
        free_for_slow = len(self._served & self._slow) < MAX_FOR_SLOW
        return next((one for one in self._waiting if free_for_slow or one not in self._slow), None)

    def _turn(self, destination: str) -> bool:
        """Send messages to a destination until none is due or other destinations wait for a thread.

        Return True if the destination must be queued again, because more messages may be due.
        """
        while not self._ending.is_set():
            began = time.monotonic()
            pause = self._send(destination)
            if not pause:
                if pause is None:
                    return False
                is_slow = time.monotonic() - began > SLOW_SECONDS
                with self._lock:
                    if is_slow:
                        self._slow.add(destination)
                    else:
                        self._slow.discard(destination)
                    if self._waiting:
                        return True
            elif pause > MAX_WAIT_SECONDS or self._waiting:
                return False
            else:
                self._ending.wait(pause)
        return False
