"""The places of a bulkhead, and who waits for one: threads and tasks of any event loop, in one
queue. Nobody holds the lock while waiting; this here is arithmetic and waking only."""

import threading
from bisect import insort
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from switchgear.patterns import forks
from switchgear.patterns.parameters import BulkheadParameters

SOME = 16
"""Places that are made at once where there is no limit."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Of a bulkhead, now: `limit` and `queue_limit` are None while it has none; `rejected` only
    grows. `in_flight` may be more than a limit that was lowered."""

    in_flight: int
    limit: int | None
    queued: int
    queue_limit: int | None
    rejected: int


class Waiter:
    """One who waits, until `state` says otherwise. `wake` tells it so, from any thread; it raises
    :class:`RuntimeError` if there is nobody to be woken, as in a closed event loop."""

    __slots__ = ("key", "rank", "state", "wake")

    def __init__(self, rank: tuple[int, int], key: Hashable, wake: Callable[[], object]) -> None:
        self.rank = rank
        self.key = key
        self.wake = wake
        self.state = "waiting"


class Places:
    """So many calls at once, so many of one key, so many who wait.

    A place that is free is an item of `_free`. To take one out and to put it back are single steps,
    which take no lock as long as nobody waits; `_busy` says that somebody does, or that there are
    more places than there should be. Who gives one back puts it there first and looks at `_busy`
    then, who begins to wait sets `_busy` first and looks for a place then: one of the two sees it.
    """

    def __init__(self, parameters: BulkheadParameters | None) -> None:
        self._lock = threading.RLock()
        self._free: list[None] = []
        self._all = 0
        """Places, free or not."""
        self._busy = self._is_settling = self._is_due = False
        self._keys: dict[Hashable, int] = {}
        self._queue: list[Waiter] = []
        """By rank: the highest priority first, and of one priority who came first."""
        self._arrivals = 0
        self._rejected = 0
        self.configure(parameters)

    def take(self, key: Hashable = None) -> bool:
        """A place, if there is one now."""
        if key is None and not self._busy:
            try:
                self._free.pop()
            except IndexError:
                if self._limit is not None:
                    return False
            else:
                return True
        with self._lock:
            self._settle()  # What was given back just now is for who waits.
            return self._take(key)

    def give(self, key: Hashable = None) -> None:
        """A place back."""
        if key is not None:
            with self._lock:
                self._vacate(key)
        self._free.append(None)
        if self._busy:
            self._settle()

    def line_up(
        self, key: Hashable, priority: int, wake: Callable[[], object] | None
    ) -> Waiter | str:
        """A place at once, or one in the queue for whom `wake` can tell; else why not. Who comes
        into a full queue takes the place in it of the last of a lower priority."""
        with self._lock:
            self._arrivals += 1
            waiter = Waiter((-priority, self._arrivals), key, wake or _nobody)
            self._settle()
            if self._take(key):
                waiter.state = "admitted"
                return waiter
            if wake is None or not self._queue_limit:
                return self._full(key)
            if len(self._queue) >= self._queue_limit:
                last = self._queue[-1]
                if -last.rank[0] >= priority:
                    return self._full(key)
                self._queue.pop()
                last.state = "displaced"
                _wake(last)
            insort(self._queue, waiter, key=_rank)
            self._settle()
            return waiter

    def leave(self, waiter: Waiter) -> str:
        """Who waited long enough goes; what became of it: "admitted" if it has a place after all,
        "displaced" or "gone"."""
        with self._lock:
            if waiter.state == "waiting":
                waiter.state = "gone"  # First: nobody gives it a place from here on.
                self._queue.remove(waiter)
                self._settle()
            return waiter.state

    def reject(self) -> None:
        """One more who had none."""
        with self._lock:
            self._rejected += 1

    def configure(self, parameters: BulkheadParameters | None) -> None:
        """From now on. Who waits goes on waiting, also in a queue that got shorter; who has a
        place keeps it."""
        with self._lock:
            self._limit = None if parameters is None else parameters.limit
            self._queue_limit = 0 if parameters is None else parameters.queue
            self._per_key = None if parameters is None else parameters.per_key_limit
            self._settle()

    def look(self) -> Occupancy:
        with self._lock:
            in_flight = self._all - len(self._free)
            queue_limit = None if self._limit is None else self._queue_limit
            return Occupancy(in_flight, self._limit, len(self._queue), queue_limit, self._rejected)

    def after_fork(self) -> None:
        """In a child: who waits here are the parent's threads, and one may hold the lock."""
        forks.forsake(self._lock)
        self._lock = threading.RLock()
        self._queue = []
        self._busy = self._is_settling = False

    def _settle(self) -> None:
        """As many places as there should be, and none free for which somebody waits."""
        with self._lock:
            self._is_due = True
            if self._is_settling:
                return  # A signal's handler or a finalizer came in between: it goes on below.
            self._is_settling = True
            try:
                while self._is_due:
                    self._is_due = False
                    self._busy = True
                    self._resize()
                    self._admit()
                    # Who gives a place back from here on has the lock to wait for, or sees this.
                    self._busy = bool(self._queue) or self._all > (self._limit or self._all)
            finally:
                self._is_settling = False

    def _admit(self) -> None:
        """In order; one whose key is at its limit holds up nobody."""
        for waiter in self._queue.copy():
            if not self._free:
                return
            if waiter.state != "waiting" or not self._take(waiter.key):
                continue
            self._queue.remove(waiter)
            waiter.state = "admitted"
            if not _wake(waiter):
                waiter.state = "gone"
                self._vacate(waiter.key)
                self._free.append(None)

    def _resize(self) -> None:
        if self._limit is None:  # No more than are wanted now: `_take` makes others.
            missing = len(self._queue) - len(self._free)
        else:
            missing = self._limit - self._all
        if missing > 0:
            self._free.extend([None] * missing)
            self._all += missing
        while self._limit is not None and self._all > self._limit and self._pop():
            self._all -= 1

    def _take(self, key: Hashable) -> bool:
        if not self._has_room(key) or not self._pop():
            return False
        if key is not None:
            self._keys[key] = self._keys.get(key, 0) + 1
        return True

    def _pop(self) -> bool:
        try:
            self._free.pop()
        except IndexError:
            if self._limit is not None:
                return False
            self._free.extend([None] * SOME)
            self._all += SOME + 1
        return True

    def _has_room(self, key: Hashable) -> bool:
        return key is None or self._per_key is None or self._keys.get(key, 0) < self._per_key

    def _vacate(self, key: Hashable) -> None:
        if key is None:
            return
        left = self._keys.get(key, 0) - 1
        if left > 0:
            self._keys[key] = left
        else:
            self._keys.pop(key, None)

    def _full(self, key: Hashable) -> str:
        if not self._has_room(key):
            return "limit of key"  # Which one, nobody is to read in a log.
        return "queue is full" if self._queue_limit else f"limit of {self._limit}"


def _nobody() -> None: ...


def _rank(waiter: Waiter) -> tuple[int, int]:
    return waiter.rank


def _wake(waiter: Waiter) -> bool:
    try:
        waiter.wake()
    except RuntimeError:  # Its event loop is closed: it will never come.
        return False
    return True
