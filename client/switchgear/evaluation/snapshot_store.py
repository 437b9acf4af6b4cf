"""The current snapshot of a client, and the decisions cached for it.

A snapshot is replaced as a whole together with its cached decisions. Emergency orders stay in force
beside it until a snapshot lists them as closed. Nothing here does I/O. The
thread that follows the console replaces :attr:`SnapshotStore.cache`, and all threads read it.
"""

import random
import threading
from collections.abc import Callable, Iterable, Mapping

from switchgear.clock import ConsoleClock
from switchgear.evaluation.bucketing import BUCKETS, BucketDraw, always_allow
from switchgear.evaluation.decision_counts import (
    MAX_CACHED_QUERIES,
    CachedQuery,
    DecisionTally,
    DroppedQueries,
    SwitchCounts,
)
from switchgear.evaluation.decisions import Decision, evaluate, make_query
from switchgear.evaluation.deduplicated_log import DeduplicatedLog
from switchgear.evaluation.emergency_orders import (
    NO_ORDERS,
    EmergencyOrders,
    separate_published,
)
from switchgear.evaluation.evaluation_view import EvaluationView, ViewListener
from switchgear.evaluation.keys import MAX_CACHED_KEYS, CacheKey, cache_key, key_text
from switchgear.evaluation.snapshot import Snapshot, SwitchEntry, forced_entry

MAX_EPOCHS = 1000
FORCED_REASON = "SWITCHGEAR_FORCE_ENGAGED"


class SnapshotStore:
    """The switches now in force in a client, and the decisions on calls. Thread-safe."""

    def __init__(
        self,
        clock: ConsoleClock,
        forced: Mapping[str, str] | Iterable[str] = (),
        draw: BucketDraw = lambda: random.randrange(BUCKETS),  # noqa: S311
    ) -> None:
        self.clock = clock
        self.counts = SwitchCounts()
        self.left_epochs: tuple[str, ...] = ()
        """The latest 1,000 replaced epochs, oldest first, whose snapshots are refused."""
        self.listeners: list[ViewListener] = []
        self._draw = draw
        self._subscribers: dict[object, Callable[[], object]] = {}
        self._console_snapshot: Snapshot | None = None
        """The console's latest snapshot, received or from disk; not a bootstrap."""
        self._is_confirmed = False
        """True once the console itself has answered."""
        # Reentrant, since a signal handler may evaluate switches, too.
        self._lock = threading.RLock()
        self._forced = {switch: forced_entry(switch, FORCED_REASON) for switch in forced}
        self._orders = NO_ORDERS
        self._published: Mapping[str, SwitchEntry] = {}
        """The switches of the snapshot in force, without those of emergency orders."""
        self._dropped = DroppedQueries()
        self._log = DeduplicatedLog()
        self.view = EvaluationView(None, dict(self._forced))
        self.cache = self.view.cache
        """The same dict as `view.cache`, which saves the hottest path a look-up."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot in force, None before the first."""
        return self.view.snapshot

    @property
    def is_bootstrapped(self) -> bool:
        """True if the snapshot in force is the configured initial one, not yet the console's."""
        with self._lock:
            return self.view.snapshot is not self._console_snapshot

    def accept(self, snapshot: Snapshot, *, is_live: bool = True) -> bool:
        """Put `snapshot` in force and return True; return False for an older one.

        Versions never decrease within an epoch, and a replaced epoch is never accepted again. Only
        the open emergency orders of such an older snapshot are put in force. A snapshot of the same
        version may have other entries: an instance that is marked for drills gets its own document,
        and data planes may know different orders. `is_live` is False for a snapshot read from disk.
        """
        with self._lock:
            before, present = self.view, self._console_snapshot
            is_same_epoch = present is not None and snapshot.epoch == present.epoch
            if present is not None and is_same_epoch and snapshot.version < present.version:
                self._replace_orders(self._orders.add(snapshot, self.clock.now()))
                return False
            is_left = not is_same_epoch and snapshot.epoch in self.left_epochs
            if is_left:
                self._replace_orders(self._orders.add(snapshot, self.clock.now()))
            else:
                if present is not None and not is_same_epoch:
                    self.left_epochs = (*self.left_epochs, present.epoch)[-MAX_EPOCHS:]
                self._is_confirmed = self._is_confirmed or is_live
                if not self._confirm(snapshot.document):
                    self._console_snapshot = snapshot
                    self._put_in_force(snapshot)
            after = self.view
        # A log handler may wait for a thread that waits for the lock.
        if is_left:
            self._log.left_epoch(snapshot.epoch, None if present is None else present.mark)
        elif before.snapshot is not None and snapshot.epoch != before.snapshot.epoch:
            now = self.clock.release_now()
            stopped = before.entries_in_force(now).keys()
            released = stopped - after.entries_in_force(now).keys()
            mark = before.snapshot.mark
            self._log.released_by_epoch(stopped, released, mark, snapshot.mark)
        return not is_left

    def confirm(self, document: bytes) -> bool:
        """Record that the console sent `document`; return False, without effect, if it is new."""
        with self._lock:
            is_same = self._confirm(document)
            self._is_confirmed = self._is_confirmed or is_same
            return is_same

    def renew_orders(self, *, is_all: bool) -> None:
        """Record that a data plane still lists the orders of the snapshot in force.

        If `is_all`, it lists all orders in force.
        """
        with self._lock:
            snapshot = self.view.snapshot
            if snapshot is None or not self._orders.kept:
                return
            ids = self._orders.ids if is_all else snapshot.open_orders
            self._orders = self._orders.renew(ids, self.clock.now())

    def bootstrap(self, snapshot: Snapshot) -> bool:
        """Put the configured initial `snapshot` in force until the console answers.

        Do nothing and return False if the console has answered, if a new epoch has begun, or if the
        snapshot loaded from disk is at least as new, or of another epoch.
        """
        with self._lock:
            copy = self._console_snapshot
            if self._is_confirmed or snapshot.epoch in self.left_epochs:
                return False
            if copy is not None and (
                snapshot.epoch != copy.epoch or snapshot.version <= copy.version
            ):
                return False
            self._put_in_force(snapshot, listed_at=snapshot.published_at)
        return True

    def restore_orders(self, entries: Iterable[SwitchEntry]) -> None:
        """Put emergency orders that were saved on disk in force, by their `entries`."""
        with self._lock:
            orders = self._orders.restore(entries, self.view.snapshot, self.clock.now())
            self._replace_orders(orders)

    def force(self, switch_id: str, reason: str) -> None:
        """Engage a switch in this process, whatever the snapshot contains."""
        with self._lock:
            self._forced[switch_id] = forced_entry(switch_id, reason)
            self._replace_view(self.view.snapshot)

    def unforce(self, switch_id: str) -> None:
        """End the forced engagement of a switch; the snapshot alone decides about it again."""
        with self._lock:
            self._forced.pop(switch_id, None)
            self._replace_view(self.view.snapshot)

    @property
    def forced(self) -> dict[str, str]:
        """The reasons of the switches forced in this process, by switch id."""
        return {switch: entry.reason for switch, entry in dict(self._forced).items()}

    def decide(
        self, segment: object, feature: object, experiments: object, targeting_key: object
    ) -> Decision:
        """Return the decision on a call with these keys, and count the call. Never raises.

        A decision that is the same for all calls with these keys is cached.
        """
        view = self.view
        if type(experiments) is list:
            experiments = tuple(experiments)
        key: CacheKey | None = (segment, feature, experiments)
        try:
            cached = view.cache.get(key)  # type: ignore[arg-type]
            if cached is None and (key := cache_key((segment, feature, experiments))) is not None:
                cached = view.cache.get(key)
        except Exception:  # The keys can't be hashed or compared.
            cached = key = None
        if cached is None:
            query = make_query(segment, feature, experiments)
            if not query.is_known:
                self._log.wrong_question(query)
            cached = self._cache_query(view, key, CachedQuery(query, view.constant_decision(query)))
        decision = cached.decision
        if decision is not None:
            count_call = cached.count_call
        else:
            tally = self._evaluate(view, cached, targeting_key)
            decision, count_call = tally.decision, tally.count_call
        if cached.is_cached and view is self.view:
            count_call()
        else:
            self.counts.add(cached.query, decision)
        return decision

    def recheck(
        self, segment: object, feature: object, experiments: object, targeting_key: object
    ) -> Decision:
        """Decide again for a running call that was allowed, without counting it. Never raises.

        Without a targeting key, a ramping switch decides at random; here it does not block the
        call, which it allowed before.
        """
        view = self.view
        cached = view.cached_query((segment, feature, experiments))
        if cached is not None and cached.decision is not None:
            return cached.decision
        query = make_query(segment, feature, experiments) if cached is None else cached.query
        key = None if targeting_key is None else self._text(targeting_key)
        blocking = evaluate(
            query.switch_ids, view.entries, key, now=self.clock.release_now(), draw=always_allow
        )
        return view.decide(query, blocking)

    def subscribe(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Call `callback` after each change of the switches; return a function that ends this.

        `callback` runs in the thread that makes the change, and must neither block nor raise.
        """
        key = object()
        self._subscribers[key] = callback
        return lambda: self._subscribers.pop(key, None)

    def switch_counts(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of allowed and blocked calls since the process began, by switch id."""
        with self._lock:
            self._collect_counts()
        return self.counts.switches()

    def after_fork(self) -> None:
        self._lock = threading.RLock()
        self.clock.after_fork()
        self.counts = SwitchCounts()
        self._dropped = DroppedQueries()
        self._subscribers = {}  # Their threads and event loops are the parent's.
        self.view = EvaluationView(self.view.snapshot, self.view.entries, self.view.orders)
        self.cache = self.view.cache

    def _confirm(self, document: bytes) -> bool:
        current = self.view.snapshot
        if current is None or current.document != document:
            return False
        self._console_snapshot = current
        if self._orders:  # They are listed once more.
            self._orders = self._orders.accept(current, self.clock.now(), is_new_epoch=False)
        return True

    def _put_in_force(self, snapshot: Snapshot, listed_at: float | None = None) -> None:
        """Replace the view; `listed_at` is the time when orders were listed, by default now."""
        before = self.view.snapshot
        is_new_epoch = before is not None and before.epoch != snapshot.epoch
        if is_new_epoch:
            self._published = {}
        if self._orders or snapshot.open_orders or snapshot.closed_orders:
            now = self.clock.now() if listed_at is None else min(listed_at, self.clock.now())
            self._orders = self._orders.accept(snapshot, now, is_new_epoch=is_new_epoch)
        self._replace_view(snapshot)

    def _replace_orders(self, orders: EmergencyOrders) -> None:
        if orders is not self._orders:
            self._orders = orders
            self._replace_view(self.view.snapshot)

    def _replace_view(self, snapshot: Snapshot | None) -> None:
        before = self.view
        self._collect_counts()
        self._dropped.add_cache(before.cache)
        entries: Mapping[str, SwitchEntry] = {} if snapshot is None else snapshot.entries
        if snapshot is not None and self._orders:
            known = self._published
            self._published, entries = separate_published(snapshot, self._orders, known)
        else:
            self._published = entries
        entries = self._orders.merge(entries)
        self.view = EvaluationView(snapshot, {**entries, **self._forced}, self._orders)
        self.cache = self.view.cache
        for listener in self.listeners:
            listener(before, self.view)
        for callback in list(self._subscribers.values()):
            callback()

    def _collect_counts(self) -> None:
        """Add the calls newly counted by cached queries to the totals.

        Calls counted meanwhile are added next time.
        """
        for cached in self._dropped.with_those_of(self.view.cache):
            self.counts.add_new(cached)

    def _cache_query(
        self, view: EvaluationView, key: CacheKey | None, cached: CachedQuery
    ) -> CachedQuery:
        """Store `cached` under `key` if no query is stored there, and return the stored query.

        If it can't be stored, for example because the lock is taken, return `cached` itself.
        """
        query = cached.query
        if key is None or not query.is_known or len(query.switch_ids) > MAX_CACHED_KEYS:
            return cached
        # Calls don't wait while counts are collected or the view is replaced.
        if not self._lock.acquire(blocking=False):
            return cached
        try:
            if view is not self.view:
                return cached
            stored = view.cache.setdefault(key, cached)
            if stored is cached:
                cached.is_cached = True
                view.cache_order.append(key)
                self._evict_oldest(view)
            return stored
        finally:
            self._lock.release()

    def _evict_oldest(self, view: EvaluationView) -> None:
        if len(view.cache_order) > MAX_CACHED_QUERIES:
            evicted = view.cache.pop(view.cache_order.popleft(), None)
            if evicted is not None:
                evicted.is_cached = False  # Guards that hold it evaluate it again.
                self._dropped.add(evicted, self.counts)

    def _evaluate(
        self, view: EvaluationView, cached: CachedQuery, targeting_key: object
    ) -> DecisionTally:
        """Evaluate the query for one call, and return the counter of the resulting decision."""
        entries, query = view.entries, cached.query
        key = None if targeting_key is None else self._text(targeting_key)
        now = self.clock.release_now()
        blocking = evaluate(query.switch_ids, entries, key, now=now, draw=self._draw)
        switch = None if blocking is None else blocking.id
        tally = cached.by_switch.get(switch)
        if tally is None:
            decision = view.decide(query, blocking)
            tally = cached.by_switch.setdefault(switch, DecisionTally(decision))
        return tally

    def _text(self, targeting_key: object) -> str | None:
        """Return a targeting key as text; None if that fails: ramping switches decide at random."""
        try:
            text = key_text(targeting_key)
            return str(targeting_key) if text is None else text
        except Exception as error:
            self._log.wrong_targeting_key(targeting_key, error)
            return None
