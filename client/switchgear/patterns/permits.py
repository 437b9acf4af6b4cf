"""The permits of a bulkhead and their queue, shared by threads and tasks of any event loop.

No lock is held while a call waits. No permit is lost to an exception that a signal handler raises:
between taking a permit and storing that fact, and between clearing the fact and putting the permit
back, there is no point at which Python runs a handler (no call, and no jump backwards).
"""

import threading
from bisect import insort
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

from switchgear.evaluation.keys import Key, key_text
from switchgear.journal import log_error
from switchgear.patterns import forks
from switchgear.patterns.parameters import BulkheadParameters

BATCH_SIZE = 16
"""Number of permits created at a time for a bulkhead without a limit."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Counts and limits of a bulkhead at one moment.

    `limit` and `queue_limit` are None without a limit; `rejected` only grows. `in_flight` may
    exceed a limit that was lowered; an adaptive `limit` changes.
    """

    in_flight: int
    limit: int | None
    queued: int
    queue_limit: int | None
    rejected: int


class Waiter:
    """A call in the queue of a bulkhead, or about to enter it.

    `wake` is called, in any thread, once `state` is "admitted" or "displaced" (by a call of higher
    priority); if `wake` raises, the call can't go on. A `wake` of None marks a call that can't
    wait. `reason` names the limit that rejected the call.
    """

    __slots__ = ("key", "rank", "reason", "state", "wake")

    def __init__(self, key: str | None, priority: int, wake: Callable[[], object] | None) -> None:
        self.key = key
        self.rank = (-priority, 0)
        self.wake = wake
        self.state = "waiting"
        self.reason = ""


class PermitPool:
    """The permits of a bulkhead for concurrent calls, in all and per key, and the queue for them.

    A free permit is an item of `_free`. Taking a permit and putting it back are single steps
    without a lock as long as no call waits. `busy` is True if a call waits, or if there are more
    permits than the limit allows. `put_back` appends and then checks `busy`; a call that begins to
    wait sets `busy` and then looks for a permit: so one of the two always sees the other's change.
    """

    def __init__(self, parameters: BulkheadParameters | None) -> None:
        self._lock = threading.RLock()
        self._free: list[None] = []
        self._returned: list[str] = []
        """The keys of permits that were put back but are not free yet."""
        self.put_back: Callable[[None], None] = self._free.append
        """Put back a permit in one step. Call :meth:`settle` after it if `busy` is True."""
        self.put_back_key: Callable[[str], None] = self._returned.append
        """Put back the permit of a key in one step; like `put_back`."""
        self._total = 0
        """Permits in existence, free or not."""
        self.busy = self._is_settling = self._is_due = False
        self._keys: defaultdict[str, int] = defaultdict(int)
        self._queue: list[Waiter] = []
        """Waiting calls by rank: highest priority first, then order of arrival."""
        self._arrivals = 0
        self._rejected = 0
        self._controller: object = None
        self.configure(parameters)

    def acquire(self, key: str | None = None) -> bool:
        """Take a permit and return True, or return False if none is free."""
        if key is None and not self.busy:
            try:
                del self._free[-1]
            except IndexError:
                if self._limit is not None and not self._returned:
                    return False
            else:
                return True
        is_acquired = False
        try:
            with self._lock:
                if self.busy:
                    self.settle()  # Permits that were just put back go to waiting calls.
                elif self._returned:
                    self._collect()
                is_acquired = self._acquire(key)
        except BaseException:  # A signal handler raised while the lock was released.
            if is_acquired:
                self.release(key)
            raise
        return is_acquired

    def release(self, key: Key | None = None, outcome: object = None) -> None:
        """Put back a permit taken for `key`. `outcome` is ignored."""
        if key is None:
            self._free.append(None)
        else:
            self._returned.append(key if type(key) is str else key_text(key) or "")
        if self.busy:
            self.settle()

    def enqueue(self, waiter: Waiter) -> str:
        """Admit the call `waiter` at once, queue it, or reject it, and return its state.

        If the queue is full, `waiter` displaces the last call of a lower priority.
        """
        with self._lock:
            self._arrivals += 1
            waiter.rank = (waiter.rank[0], self._arrivals)
            self.settle()
            if self._acquire(waiter.key):
                waiter.state = "admitted"
            elif waiter.wake is None or not self._queue_limit:
                self._reject(waiter, f"limit of {self._limit}")
            elif len(self._queue) < self._queue_limit or self._displaces(waiter):
                insort(self._queue, waiter, key=attrgetter("rank"))
                self.settle()
            else:
                self._reject(waiter, "queue is full")
            return waiter.state

    def dequeue(self, waiter: Waiter) -> str:
        """End the wait of a call; return its state: "admitted", "displaced", or else "gone"."""
        with self._lock:
            if waiter.state == "waiting":
                waiter.state = "gone"  # First, so that it is not admitted from here on.
                self._remove(waiter)
                self.settle()
            return waiter.state

    def abandon(self, waiter: Waiter) -> None:
        """End the wait of a call that does not begin, and put back its permit if it has one."""
        if self.dequeue(waiter) == "admitted":
            self._reclaim(waiter)
            self.settle()

    def count_rejection(self) -> None:
        with self._lock:
            self._rejected += 1

    def configure(self, parameters: BulkheadParameters | None, controller: object = None) -> None:
        """Apply the bulkhead's `parameters`.

        From now on, only `controller` may change the limit by :meth:`resize`. Queued calls stay
        queued, even if the queue got shorter; admitted calls keep their permits.
        """
        with self._lock:
            self._limit = None if parameters is None else parameters.limit
            self._queue_limit = 0 if parameters is None else parameters.queue
            self._per_key = None if parameters is None else parameters.per_key_limit
            self._controller = controller
            self.settle()

    def resize(self, limit: int, controller: object) -> None:
        """Change the limit of concurrent calls; do nothing if `controller` has been replaced."""
        with self._lock:
            if controller is self._controller and limit != self._limit:
                self._limit = limit
                self.settle()

    @property
    def in_flight(self) -> int:
        return self._total - len(self._free) - len(self._returned)

    def occupancy(self) -> Occupancy:
        with self._lock:
            queue_limit = None if self._limit is None else self._queue_limit
            return Occupancy(
                self.in_flight, self._limit, len(self._queue), queue_limit, self._rejected
            )

    def after_fork(self) -> None:
        """Drop the parent's waiting calls in a forked child, and replace the lock."""
        forks.keep_alive(self._lock)
        self._lock = threading.RLock()
        self._queue = []
        self.busy = self._is_settling = False

    def settle(self) -> None:
        """Create or remove permits to match the limit, and admit waiting calls."""
        with self._lock:
            self._is_due = True
            if self._is_settling:
                return  # A signal handler or finalizer inside the loop below, which runs again.
            self._is_settling = True
            try:
                while self._is_due:
                    self._is_due = False
                    self.busy = True
                    self._collect()
                    self._resize()
                    self._admit()
                    # `release` after this line waits for the lock, or sees the new `busy`.
                    self.busy = bool(self._queue) or self._total > (self._limit or self._total)
            finally:
                self._is_settling = False

    def _collect(self) -> None:
        while self._returned:
            key = self._returned[0]
            del self._returned[0]
            if key in self._keys:
                self._keys[key] -= 1
                if not self._keys[key]:
                    del self._keys[key]
            self.put_back(None)

    def _resize(self) -> None:
        if self._limit is None:  # Only as many as are needed now: `_pop` creates others.
            missing = len(self._queue) - len(self._free)
        else:
            missing = self._limit - self._total
        if missing > 0:
            self._add(missing)
        while self._limit is not None and self._total > self._limit and self._pop():
            self._total -= 1

    def _admit(self) -> None:
        """Admit waiting calls in order, skipping calls whose key is at its limit."""
        for waiter in self._queue.copy():
            if waiter.state == "waiting":
                if not self._free:
                    return
                if not self._acquire(waiter.key):
                    continue
                waiter.state = "admitted"
            # The call leaves the queue last, so that the next run completes an interrupted one.
            if not _wake(waiter) and waiter.state == "admitted":
                self._reclaim(waiter)
                self._is_due = True
            self._remove(waiter)

    def _acquire(self, key: str | None) -> bool:
        if not self._has_room(key) or not self._pop():
            return False
        if key is not None:
            self._keys[key] += 1
        return True

    def _reclaim(self, waiter: Waiter) -> None:
        """Take back the permit of a call that was admitted but does not begin."""
        key, waiter.state = waiter.key, "gone"
        if key is None:
            self.put_back(None)
        else:
            self.put_back_key(key)

    def _pop(self) -> bool:
        while True:
            try:
                del self._free[-1]
            except IndexError:
                if self._limit is not None:
                    return False
                self._add(BATCH_SIZE)
            else:
                return True

    def _add(self, count: int) -> None:
        self._total += count
        self._free += [None] * count

    def _has_room(self, key: str | None) -> bool:
        if key is None or self._per_key is None or key not in self._keys:
            return True
        return self._keys[key] < self._per_key

    def _displaces(self, waiter: Waiter) -> bool:
        last = self._queue[-1]
        if last.rank[0] <= waiter.rank[0] or last.state != "waiting":
            return False
        last.state = "displaced"
        self._remove(last)
        _wake(last)
        return True

    def _reject(self, waiter: Waiter, reason: str) -> None:
        waiter.state = "rejected"
        # Keys must not appear in logs.
        waiter.reason = reason if self._has_room(waiter.key) else "limit of key"

    def _remove(self, waiter: Waiter) -> None:
        with suppress(ValueError):  # Missing in a forked child, whose queue starts empty.
            self._queue.remove(waiter)


def _wake(waiter: Waiter) -> bool:
    try:
        if waiter.wake is not None:
            waiter.wake()
    except RuntimeError:  # Its event loop is closed, so the call can't go on.
        return False
    except Exception:
        log_error("could not wake a call that waits for a bulkhead")
        return False
    return True
