"""Processes of data planes and their disks, with the real state, order set and saved state."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from controlplane.core.signatures import SigningKey
from controlplane.dataplane.emergency.service import CLOSED_RETENTION
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.postgres.database import DatabaseHead
from controlplane.dataplane.relay.bundle import sign_bundle
from controlplane.dataplane.relay.collection import collect
from controlplane.dataplane.relay.difference import (
    OlderBundle,
    ReceivedBundle,
    apply_event,
    serialize_full,
)
from controlplane.dataplane.relay.installation import install_bundle
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.saved_snapshot import SavedSnapshot, SavedState
from controlplane.dataplane.storage.snapshot_file import SnapshotDisk, apply_latest
from controlplane.dataplane.sync.snapshot_keeper import collect_state, restore_state
from switches.emergency.orders import Order
from switches.emergency.relay_signatures import sign_order
from switches.snapshot import SnapshotVersion

from .database import Truth

SIGNING_KEY, RELAY_KEY, LYING_KEY = (SigningKey(bytes([number] * 32)) for number in range(3))


@dataclass
class Disk:
    """The data folder of a plane, which its processes share.

    `latest` is written without fsync, so that a power failure may lose it. A relay has a bundle
    instead of saved states.
    """

    journal: set[Order] = field(default_factory=set)
    current: SavedState | None = None
    previous: SavedState | None = None
    latest: dict[SnapshotVersion, SavedSnapshot] = field(default_factory=dict)
    bundle: ReceivedBundle | None = None
    left_epochs: frozenset[UUID] = frozenset()

    def save(self, saved: SavedState) -> None:
        content = saved if self.current is None else SnapshotDisk.merge(self.current, saved)
        if content != self.current:
            self.previous, self.current = self.current or self.previous, content

    def save_latest(self, copy: Copy) -> None:
        new = copy.publication
        saved = SavedSnapshot(new, tuple(copy.entries.values()), copy.orders)
        self.latest = {
            each: kept
            for each, kept in self.latest.items()
            if each.epoch == new.epoch and each.version >= new.version
        } | {new: saved}

    def load(self) -> SavedState | None:
        saved = self.current or self.previous
        if saved is None:
            return None
        for each in sorted(self.latest, key=lambda each: each.version, reverse=True):
            ours = saved.publication
            if each.epoch != ours.epoch or each.version > ours.version:
                saved = apply_latest(saved, self.latest[each])
        return saved


class Process:
    """One process of the data plane `plane`; `state` is None while it is down."""

    def __init__(self, plane: str, disk: Disk) -> None:
        self.plane = plane
        self.disk = disk
        self.state: State | None = None

    def start(self, monotonic: Callable[[], float], clock: datetime) -> None:
        """Start with what is on disk; `clock` is the local clock, which may be wrong."""
        state = State(monotonic)
        state.set_clock(clock, monotonic())
        state.install_keys([SIGNING_KEY], ())
        saved = self.disk.load()
        if saved is not None:
            restore_state(state, saved)
        state.add_orders(self.disk.journal)
        self.state = state

    def kill(self) -> None:
        self.state = None

    @property
    def orders(self) -> OrderSet:
        return self.live.orders

    @property
    def live(self) -> State:
        assert self.state is not None
        return self.state

    def sign(self, order: Order) -> Order:
        """Return an order as this plane accepts it."""
        return order

    def merge(self, orders: Iterable[Order]) -> None:
        """Store orders durably, then serve them."""
        before, after = self.orders, self.orders.add(orders)
        news = [each for key, each in after.orders.items() if before.orders.get(key) != each]
        self.disk.journal |= set(news)
        self.live.add_orders(news)

    def read_folder(self) -> None:
        """Read the orders that other processes of this plane have stored."""
        self.live.add_orders(self.disk.journal)

    def save(self) -> None:
        saved = collect_state(self.live)
        if saved is None:
            return
        self.disk.save(saved)
        since = saved.confirmed_at - CLOSED_RETENTION
        old = [key for key, each in saved.closed.items() if each.at < since]
        self.disk.journal -= {each for each in self.disk.journal if each.id in old}
        self.live.forget_orders(old)

    def poll(self, truth: Truth, now: datetime, *, dies_before_serving: bool = False) -> None:
        """Read the database as the refresher does; `truth` may be that of a lagging replica."""
        state = self.live
        head = DatabaseHead(truth.publication, revision=1, registrations=1, now=now)
        state.set_clock(now, state.now())
        if state.is_lagging(head):
            return
        if state.lacks_copy(head):
            closed = truth.read_closed(state.orders.uncertain_ids(state.wall()))
            listed = state.list_closed(closed)
            entries = truth.entries.values()
            copy = Copy.render(truth.publication, entries, state.published, orders=listed)
            before = state.published
            if before is None or before.publication != copy.publication:
                self.disk.save_latest(copy)
            if dies_before_serving:
                self.kill()
                return
            state.install_copy(copy, confirmed_at=state.now(), closed=closed)
            state.install_tokens(1, {})
            state.install_known(1, frozenset())
        state.confirm(state.now())

    def notice_closed(self, truth: Truth) -> None:
        """Read the snapshot again if an order that was just inserted is closed already."""
        rows, unclosed = truth.rows, self.orders.unclosed
        if any(key in rows and rows[key].closed_at is not None for key in unclosed):
            self.live.must_reread = True

    def is_engaged(self, switch: str) -> bool | None:
        """Return True if the switch is served as engaged; None if nothing is served."""
        copy = self.live.copy
        if copy is None:
            return None
        entry = copy.entries.get(switch)
        return entry is not None and entry.state == "engaged"


class Relay(Process):
    """A process of a relay, which follows `upstream` and can't reach the database.

    It exchanges bundles as bytes that are signed, parsed and verified by the real code.
    """

    def __init__(self, plane: str, disk: Disk, upstream: Process) -> None:
        super().__init__(plane, disk)
        self.upstream = upstream

    def start(self, monotonic: Callable[[], float], clock: datetime) -> None:
        state = State(monotonic)
        state.set_clock(clock, monotonic())
        state.left_epochs = self.disk.left_epochs
        if self.disk.bundle is not None:
            install_bundle(state, self.disk.bundle, state.now())
        state.add_orders(self.disk.journal)
        self.state = state

    def sign(self, order: Order) -> Order:
        return sign_order(order, RELAY_KEY)

    def save(self) -> None:
        """Forget old orders that are closed."""
        orders = self.live.orders
        since = self.live.wall() - CLOSED_RETENTION
        old = [key for key, each in orders.closed.items() if each.at < since]
        self.disk.journal -= {each for each in self.disk.journal if each.id in old}
        self.live.forget_orders(old)

    def poll(self, truth: Truth, now: datetime, *, dies_before_serving: bool = False) -> None:
        """Install the bundle of the upstream, which may be down; `truth` can't be read here."""
        source, state, before = self.upstream.state, self.live, self.disk.bundle
        bundle = None if source is None else collect(source, None)
        if bundle is None:
            return
        data = serialize_full(sign_bundle(bundle, [SIGNING_KEY]))
        try:
            received = apply_event(before, data, {SIGNING_KEY.public.id: SIGNING_KEY.public})
        except OlderBundle:
            return
        if received.head.publication.epoch in state.left_epochs:
            return
        state.set_clock(now, state.now())
        self.disk.bundle = received
        if dies_before_serving:
            self.kill()
            return
        install_bundle(state, received, state.now())
        self.disk.left_epochs = state.left_epochs
        state.confirm(state.now())
