"""Counts of decisions for each switch since the process began, in bounded memory."""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from switchgear.evaluation.decisions import Decision, SwitchQuery
from switchgear.evaluation.keys import CacheKey

MAX_SWITCHES = 1000
"""Maximum number of switches in a report."""

MAX_CACHED_QUERIES = 10_000
MAX_EVICTED = 100
MAX_RETIRED_CACHES = 64


class DecisionTally:
    """A counter of the calls that got one decision; counts without a lock."""

    __slots__ = ("_reads", "_taken", "count_call", "decision")

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.count_call = itertools.count().__next__
        self._reads = 0
        self._taken = 0

    def take_new(self) -> int:
        """Return the number of calls counted since the last :meth:`take_new`. Not thread-safe."""
        ticks = self.count_call() - self._reads
        self._reads += 1
        new, self._taken = ticks - self._taken, ticks
        return new


_EMPTY: dict[str | None, DecisionTally] = {}


class CachedQuery:
    """The decisions on calls with one query under one :class:`EvaluationView`, and their counts.

    If all calls get one decision, `decision` holds it, `answer` is True if it allows them, and
    `count_call` counts a call. If the decision depends on the targeting key, on chance or on the
    time, `decision` and `answer` are None. The counts are used only while `is_cached` is True;
    otherwise each call is added to :class:`SwitchCounts`.
    """

    __slots__ = ("_constant", "answer", "by_switch", "count_call", "decision", "is_cached", "query")

    def __init__(self, query: SwitchQuery, decision: Decision | None) -> None:
        self.query = query
        self.decision = decision
        self.answer = None if decision is None else decision.allowed
        self.is_cached = False
        self._constant = None if decision is None else DecisionTally(decision)
        self.by_switch: dict[str | None, DecisionTally] = {} if decision is None else _EMPTY
        """Tallies of blocked calls by switch id, and of allowed calls under the key None."""
        self.count_call: Callable[[], int] = (
            (lambda: 0) if self._constant is None else self._constant.count_call
        )

    def tallies(self) -> Iterable[DecisionTally]:
        """Return the counters of all decisions made on this query."""
        if self._constant is not None:
            return (self._constant,)
        return list(self.by_switch.values())


class SwitchCounts:
    """Numbers of allowed and blocked calls by switch since the process began. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._switches: dict[str, list[int]] = {}
        self._never_blocked: dict[str, None] = {}
        """Switches that never blocked, in order of arrival."""
        self.dropped = 0
        """Calls not counted for a switch, because there are too many switches."""
        self.unknown = 0
        """Calls without a snapshot, or with keys that no switch can have."""

    def add(self, query: SwitchQuery, decision: Decision, calls: int = 1) -> None:
        """Count `calls` calls with this `decision` for each switch of the query.

        They count as blocked for the switch that blocks, and as allowed for the other switches.
        """
        if not calls:
            return
        with self._lock:
            self.unknown += 0 if decision.known else calls
            for switch in query.switch_ids:
                counted = self._switches.get(switch)
                if counted is None:
                    if not self._make_room(blocked=switch == decision.switch):
                        self.dropped += calls
                        continue
                    counted = self._switches[switch] = [0, 0]
                    self._never_blocked[switch] = None
                if switch == decision.switch:
                    self._never_blocked.pop(switch, None)
                counted[switch == decision.switch] += calls

    def add_new(self, cached: CachedQuery) -> None:
        """Add the calls that `cached` counted since they were last added."""
        for tally in cached.tallies():
            self.add(cached.query, tally.decision, tally.take_new())

    def switches(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of allowed and blocked calls, by switch id."""
        with self._lock:
            return {switch: (counted[0], counted[1]) for switch, counted in self._switches.items()}

    def _make_room(self, *, blocked: bool) -> bool:
        """Return True if one more switch can be counted, after dropping another if necessary.

        With `MAX_SWITCHES` counted, a switch that blocks a call (`blocked`) replaces the newest
        switch that never blocked one; any other switch is not counted.
        """
        if len(self._switches) < MAX_SWITCHES:
            return True
        if not blocked or not self._never_blocked:
            return False
        last, _ = self._never_blocked.popitem()
        self.dropped += self._switches.pop(last)[0]
        return True


class DroppedQueries:
    """Queries removed from the cache, whose calls other threads may still count. Bounded."""

    def __init__(self) -> None:
        self._evicted: deque[CachedQuery] = deque()
        self._caches: deque[dict[CacheKey, CachedQuery]] = deque()

    def add(self, cached: CachedQuery, counts: SwitchCounts) -> None:
        """Store a query evicted from the cache.

        Beyond `MAX_EVICTED`, the oldest is removed, and its new calls are added to `counts`.
        """
        self._evicted.append(cached)
        if len(self._evicted) > MAX_EVICTED:
            counts.add_new(self._evicted.popleft())

    def add_cache(self, cache: dict[CacheKey, CachedQuery]) -> None:
        """Store all queries of a cache that was replaced; beyond the limits, drop the oldest."""
        self._caches.append(cache)
        while len(self._caches) > MAX_RETIRED_CACHES or (
            len(self._caches) > 1 and sum(map(len, self._caches)) > MAX_CACHED_QUERIES
        ):
            self._caches.popleft()

    def with_those_of(self, cache: dict[CacheKey, CachedQuery]) -> Iterator[CachedQuery]:
        """Yield the stored queries and those of `cache`, the cache now in use."""
        yield from list(self._evicted)
        for each in (cache, *self._caches):
            yield from list(each.values())
