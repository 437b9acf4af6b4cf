"""Bulkheads in front of Django: for each kind of request, limited threads and fair queues.

A flood of one kind fills only its own bulkhead, which no single caller fills alone. A thread that
hangs in a database call counts as used until the call ends.
"""

import asyncio
import random
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.core.errors import Busy, TooManyRequests

MAX_WAITING = 2000
MAX_WAITING_EACH = 100
MAX_WAITING_STRANGERS = 300
RETRY_AFTER_SECONDS = (1, 5)


class RequestCaller(NamedTuple):
    """The caller whose limits apply to a request; `known` is False if only its address is known."""

    key: Hashable
    known: bool


@dataclass(frozen=True)
class Limits:
    """Limits of one bulkhead.

    At most `threads` requests run at once: at most `each` of them for one caller, and at most
    `strangers` for unknown callers. A request waits at most `wait_seconds` for a thread.
    """

    threads: int
    each: int
    strangers: int
    wait_seconds: float


class Permit(NamedTuple):
    """The right to run one request, in the thread of `executor`."""

    caller: RequestCaller
    executor: ThreadPoolExecutor


class RequestBulkhead:
    """A bulkhead for one kind of request: threads, and queues of waiting requests.

    A request starts only if `may_start` returns True for the number of running requests. `on_free`
    is called whenever a thread becomes free. All methods run in one event loop.
    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        may_start: Callable[[int], bool] = lambda _running: True,
        on_free: Callable[[], None] = lambda: None,
    ) -> None:
        self._limits = limits
        self._may_start = may_start
        self._on_free = on_free
        self._idle = [
            ThreadPoolExecutor(1, thread_name_prefix=f"{name}-{number}")
            for number in range(limits.threads)
        ]
        self._running: Counter[RequestCaller] = Counter()
        self._queues: OrderedDict[RequestCaller, deque[asyncio.Future[Permit]]] = OrderedDict()
        # Number of queued requests of known (True) and unknown (False) callers.
        self._waiting: Counter[bool] = Counter()
        self.name = name
        self.refused = 0

    @property
    def running(self) -> int:
        """Number of requests that hold a thread, including those that hang after their deadline."""
        return self._limits.threads - len(self._idle)

    @property
    def queued(self) -> int:
        """Number of requests that wait for a thread."""
        return self._waiting.total()

    async def acquire(self, caller: RequestCaller) -> Permit:
        """Wait for a thread; raise TooManyRequests or Busy if the queue is full or on a timeout."""
        try:
            return await self._acquire(caller)
        except (Busy, TooManyRequests):
            self.refused += 1
            raise

    async def _acquire(self, caller: RequestCaller) -> Permit:
        queue = self._queues.get(caller, ())
        if len(queue) >= MAX_WAITING_EACH:
            message = "Too many of your requests are waiting; send fewer at a time."
            raise TooManyRequests(message, retry_after=_retry_after_seconds())
        most = MAX_WAITING if caller.known else MAX_WAITING_STRANGERS
        if self._waiting[caller.known] >= most:
            raise _busy_error()
        future: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(future)
        self._waiting[caller.known] += 1
        self.dispatch()
        try:
            if not future.done():
                await asyncio.wait({future}, timeout=self._limits.wait_seconds)
            if not future.done():
                raise _busy_error()
        except (asyncio.CancelledError, Busy):
            if future.done():
                self.release(future.result())
            else:
                self._remove_from_queue(caller, future)
            raise
        return future.result()

    def release(self, permit: Permit) -> None:
        """Return the permit's thread to the bulkhead, once the thread has finished its work."""
        idle = asyncio.get_running_loop().run_in_executor(permit.executor, int)
        idle.add_done_callback(lambda _idle: self._handle_free_thread(permit))

    def dispatch(self) -> None:
        """Start waiting requests while threads are free: known callers first, round robin."""
        while self._idle and self._may_start(self.running) and (caller := self._next_caller()):
            future = self._queues[caller][0]
            self._remove_from_queue(caller, future)
            if caller in self._queues:
                self._queues.move_to_end(caller)
            self._running[caller] += 1
            future.set_result(Permit(caller, self._idle.pop()))

    def _next_caller(self) -> RequestCaller | None:
        limits = self._limits
        strangers = sum(count for caller, count in self._running.items() if not caller.known)
        stranger = None
        for caller in self._queues:
            if self._running[caller] >= limits.each:
                continue
            if caller.known:
                return caller
            if stranger is None and strangers < limits.strangers:
                stranger = caller
        return stranger

    def _remove_from_queue(self, caller: RequestCaller, future: "asyncio.Future[Permit]") -> None:
        queue = self._queues[caller]
        queue.remove(future)
        self._waiting[caller.known] -= 1
        if not queue:
            del self._queues[caller]

    def _handle_free_thread(self, permit: Permit) -> None:
        self._idle.append(permit.executor)
        self._running[permit.caller] -= 1
        if not self._running[permit.caller]:
            del self._running[permit.caller]
        self.dispatch()
        self._on_free()


def _busy_error() -> Busy:
    return Busy(
        "Too many requests are running. Nothing changed; try again in a moment.",
        retry_after=_retry_after_seconds(),
    )


def _retry_after_seconds() -> int:
    return random.randint(*RETRY_AFTER_SECONDS)  # noqa: S311
