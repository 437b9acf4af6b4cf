"""The switches in force at one moment, with cached decisions."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from switchgear.evaluation.decision_counts import CachedQuery
from switchgear.evaluation.decisions import Decision, SwitchQuery
from switchgear.evaluation.emergency_orders import NO_ORDERS, EmergencyOrders
from switchgear.evaluation.keys import CacheKey, cache_key
from switchgear.evaluation.snapshot import Snapshot, SwitchEntry


@dataclass(frozen=True)
class EvaluationView:
    """The switches of the snapshot, of emergency orders and those forced in this process.

    Decisions on queries are cached. `snapshot` is None before the first one. A view is replaced at
    each change of its switches.
    """

    snapshot: Snapshot | None
    entries: Mapping[str, SwitchEntry]
    orders: EmergencyOrders = NO_ORDERS
    cache: dict[CacheKey, CachedQuery] = field(default_factory=dict)
    cache_order: deque[CacheKey] = field(default_factory=deque)
    """The keys of `cache`, oldest first: finding the first key of a dictionary is slow."""

    @property
    def version(self) -> int | None:
        return None if self.snapshot is None else self.snapshot.version

    @property
    def mark(self) -> str | None:
        """The identifier by which this view is acknowledged; None before the first snapshot.

        It is `<epoch>.<version>`, followed by `-<hash>` with emergency orders.
        """
        if self.snapshot is None or not self.orders.hash:
            return None if self.snapshot is None else self.snapshot.mark
        return f"{self.snapshot.mark}-{self.orders.hash}"

    def entries_in_force(self, now: float | None) -> dict[str, SwitchEntry]:
        """Return the switches whose engagement has not ended at `now`; all if `now` is None."""
        return {
            switch: entry
            for switch, entry in self.entries.items()
            if (at := entry.lapses_at) is None or now is None or at > now
        }

    def cached_query(self, key: CacheKey) -> CachedQuery | None:
        """Return the cached query for the keys of a call, or None. Keys may be of any type."""
        try:
            if type(key[2]) is list:
                key = (*key[:2], tuple(key[2]))
            cached = self.cache.get(key)
            if cached is None and (as_text := cache_key(key)) is not None:
                cached = self.cache.get(as_text)
            return cached
        except Exception:  # The methods of a key of any type may raise.
            return None

    @cached_property
    def allowed_decision(self) -> Decision:
        """The decision on a call that no switch blocks."""
        return Decision(True, version=self.version, known=self.snapshot is not None)

    def constant_decision(self, query: SwitchQuery) -> Decision | None:
        """Return the decision if it is the same for all calls with `query`; otherwise None."""
        for switch_id in query.switch_ids:
            entry = self.entries.get(switch_id)
            if entry is None:
                continue
            if entry.state == "ramping" or entry.lapses_at is not None:
                return None
            return self.decide(query, entry)
        return self.decide(query, None)

    def decide(self, query: SwitchQuery, blocking: SwitchEntry | None) -> Decision:
        """Return the decision on a call. `blocking` is the switch that blocks it, if any does."""
        if blocking is not None:
            return Decision(False, blocking.id, blocking.reason, self.version)
        allowed = self.allowed_decision
        return allowed if query.is_known else replace(allowed, known=False)


ViewListener = Callable[[EvaluationView, EvaluationView], None]
"""A function called with the view before and after a change. It runs in the thread that makes the
change, and must neither raise nor wait."""
