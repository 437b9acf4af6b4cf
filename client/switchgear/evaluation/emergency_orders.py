"""The emergency orders that a client has seen, merged with the published switches. Pure.

An order engages a switch on data planes while the database is away. A data plane that has not heard
of an order does not list it, so an order stays in force until a snapshot lists it as closed.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from operator import attrgetter

from switchgear.evaluation.snapshot import (
    MAX_SWITCHES,
    InvalidSnapshot,
    Snapshot,
    SwitchEntry,
    parse_order_entry,
)

MAX_ORDERS = 5000
"""Maximum number of orders kept. Further ones block only while a snapshot contains their switch."""
MAX_CLOSED = MAX_SWITCHES
"""Maximum number of closed orders remembered."""
UNLISTED_SECONDS = 48 * 3600.0
"""Time since an order was last listed, after which it is dropped if a newer snapshot does not list
it. Snapshots list a closed order for 24 hours only."""


@dataclass(frozen=True, slots=True)
class KeptOrder:
    """An order in force, from the snapshot `version` of `epoch`.

    `entry` is None if the order's id is listed, but neither its entry nor its switch.
    `listed_at` is the time when a snapshot last listed the order, in UNIX seconds. The order's own
    time may be wrong.
    """

    id: str
    entry: SwitchEntry | None
    epoch: str
    version: int
    listed_at: float

    def may_be_closed(self, snapshot: Snapshot, now: float) -> bool:
        """Return True if `snapshot`, which does not list the order, no longer has to list it."""
        if snapshot.epoch == self.epoch and snapshot.version <= self.version:
            return False
        return now - self.listed_at > UNLISTED_SECONDS


@dataclass(frozen=True)
class EmergencyOrders:
    """The orders in force, by id, and the ids of `closed` ones, oldest first. Immutable.

    `closed` are those of the present epoch alone: after a backup was restored, an order can be open
    again.
    """

    kept: Mapping[str, KeptOrder] = field(default_factory=dict)
    closed: Mapping[str, None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.kept or self.closed)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the orders in force, sorted."""
        return tuple(sorted(self.kept))

    @cached_property
    def hash(self) -> str:
        """Eight hexadecimal digits that identify the orders in force; "" without any."""
        return sha256(",".join(self.ids).encode()).hexdigest()[:8] if self.kept else ""

    @cached_property
    def entries(self) -> tuple[SwitchEntry, ...]:
        """The entries of the orders in force, the earliest first."""
        entries = [order.entry for order in self.kept.values() if order.entry is not None]
        return tuple(sorted(entries, key=_precedence))

    def accept(self, snapshot: Snapshot, now: float, *, is_new_epoch: bool) -> "EmergencyOrders":
        """Return the orders after `snapshot`, which the client puts in force."""
        closed = self._close(snapshot, is_new_epoch=is_new_epoch)
        listed = frozenset(snapshot.open_orders)
        kept = {
            order.id: order
            for order in self.kept.values()
            if order.id not in closed
            if order.id in listed
            or (order.entry is not None and not order.may_be_closed(snapshot, now))
        }
        entries = _order_entries(snapshot)
        for order_id in snapshot.open_orders:
            if order_id not in closed and (order_id in kept or len(kept) < MAX_ORDERS):
                before = kept.get(order_id)
                kept[order_id] = KeptOrder(
                    order_id,
                    _latest_entry(None if before is None else before.entry, entries.get(order_id)),
                    snapshot.epoch,
                    snapshot.version,
                    now,
                )
        return EmergencyOrders(kept, closed)

    def add(self, snapshot: Snapshot, now: float) -> "EmergencyOrders":
        """Return the orders with the open ones of `snapshot`, which is not put in force.

        Return this object itself if it has them all already.
        """
        entries, origin = _order_entries(snapshot), (snapshot.epoch, snapshot.version)
        return self._add(
            KeptOrder(each, entries[each], *origin, now)
            for each in snapshot.open_orders
            if each in entries
        )

    def renew(self, ids: Iterable[str], now: float) -> "EmergencyOrders":
        """Return the orders, of which those in `ids` are listed again at `now`."""
        kept = self.kept
        listed = {each: replace(kept[each], listed_at=now) for each in ids if each in kept}
        return EmergencyOrders({**kept, **listed}, self.closed)

    def restore(
        self, entries: Iterable[SwitchEntry], snapshot: Snapshot | None, now: float
    ) -> "EmergencyOrders":
        """Return the orders with those whose `entries` were saved beside `snapshot`."""
        origin = ("", -1) if snapshot is None else (snapshot.epoch, snapshot.version)
        return self._add(
            KeptOrder(entry.emergency, entry, *origin, min(now, entry.engaged_at or now))
            for entry in entries
            if entry.emergency is not None
        )

    def to_save(self, saved: Iterable[SwitchEntry], now: float) -> tuple[SwitchEntry, ...]:
        """Return the entries to save: those in force, and those that other processes `saved`.

        Saved orders that are closed, or old enough to be dropped, are left out.
        """
        others = [entry for entry in saved if now - (entry.engaged_at or 0.0) <= UNLISTED_SECONDS]
        return self.restore(others, None, now).entries

    def merge(self, published: Mapping[str, SwitchEntry]) -> Mapping[str, SwitchEntry]:
        """Return the published switches with those of the orders in force.

        A published engagement stands, unless the client would end it at its expiry.
        """
        if not self.entries:
            return published
        merged = dict(published)
        for entry in self.entries:
            present = merged.get(entry.id)
            if present is None or present.state != "engaged" or present.lapses_at is not None:
                merged[entry.id] = entry
        return merged

    def _add(self, orders: Iterable[KeptOrder]) -> "EmergencyOrders":
        kept = dict(self.kept)
        for order in orders:
            before = kept.get(order.id)
            if order.id in self.closed or (before is not None and before.entry is not None):
                continue
            if before is not None:
                kept[order.id] = replace(before, entry=order.entry)
            elif len(kept) < MAX_ORDERS:
                kept[order.id] = order
        return self if kept == self.kept else EmergencyOrders(kept, self.closed)

    def _close(self, snapshot: Snapshot, *, is_new_epoch: bool) -> Mapping[str, None]:
        """Return the ids of closed orders after `snapshot`, at most `MAX_CLOSED`."""
        before = {} if is_new_epoch else self.closed
        listed = dict.fromkeys(snapshot.closed_orders)
        if listed.keys() <= before.keys():
            return before
        ids = [*(each for each in before if each not in listed), *listed]
        return dict.fromkeys(ids[-MAX_CLOSED:])


NO_ORDERS = EmergencyOrders()


def separate_published(
    snapshot: Snapshot,
    orders: EmergencyOrders,
    before: Mapping[str, SwitchEntry],
) -> tuple[Mapping[str, SwitchEntry], Mapping[str, SwitchEntry]]:
    """Return the published switches of `snapshot`, and those in force without other orders.

    The entry of an order hides the published one, if the switch is ramping. The signed text of the
    snapshot has the hidden entries; without it, `before`, the published switches of an earlier
    snapshot, replace them. The entry of an order that is closed, which the data plane does not know
    yet, is not in force.
    """
    if not any(map(attrgetter("emergency"), snapshot.entries.values())):
        return snapshot.entries, snapshot.entries
    if snapshot.signed_entries is not None:
        before = snapshot.signed_entries
    published: dict[str, SwitchEntry] = {}
    in_force: dict[str, SwitchEntry] = {}
    for switch, entry in snapshot.entries.items():
        if entry.emergency is None:
            published[switch] = in_force[switch] = entry
            continue
        hidden = before.get(switch)
        if hidden is not None and hidden.emergency is not None:
            hidden = None
        if hidden is not None:
            published[switch] = hidden
        if entry.emergency not in orders.closed:
            in_force[switch] = entry
        elif hidden is not None:
            in_force[switch] = hidden
    return published, in_force


def _latest_entry(before: SwitchEntry | None, listed: SwitchEntry | None) -> SwitchEntry | None:
    """Return the entry of an order after a snapshot `listed` it; an order keeps its switch."""
    if before is not None and (listed is None or listed.id != before.id):
        return before
    return listed


def _precedence(entry: SwitchEntry) -> tuple[float, str]:
    return entry.engaged_at or 0.0, entry.emergency or ""


def _order_entries(snapshot: Snapshot) -> dict[str, SwitchEntry]:
    """Return the entries of the emergency orders in `snapshot`, by the order's id.

    The entry of a hidden order is made from the one that engages its switch, and never lapses.
    """
    if not snapshot.open_orders:
        return {}
    entries: dict[str, SwitchEntry] = {}
    for entry in snapshot.entries.values():
        if entry.emergency is not None and entry.lapses_at is None:
            entries.setdefault(entry.emergency, entry)
    for order, switch in snapshot.hidden_orders.items():
        shown = snapshot.entries.get(switch)
        if shown is not None and shown.state == "engaged":
            hidden = replace(shown, expires_at=None, on_expiry="hold", emergency=order)
            entries.setdefault(order, hidden)
    return entries


def format_orders(entries: Iterable[SwitchEntry]) -> bytes:
    """Return a JSON document of the entries of orders, to be saved on disk."""
    return json.dumps([_format_entry(entry) for entry in entries]).encode()


def parse_orders(document: bytes) -> list[SwitchEntry]:
    """Return the entries in a document of :func:`format_orders`.

    Raise :class:`InvalidSnapshot` or :class:`ValueError` for any other document.
    """
    rows = json.loads(document)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidSnapshot("It is not a list of orders.")
    return [parse_order_entry(row) for row in rows[:MAX_ORDERS]]


def _format_entry(entry: SwitchEntry) -> dict[str, object]:
    times = {"engaged_at": entry.engaged_at, "expires_at": entry.expires_at}
    return {
        "id": entry.id,
        "state": entry.state,
        "salt": entry.salt,
        "reason": entry.reason,
        "on_expiry": entry.on_expiry,
        "emergency": entry.emergency,
        **{name: None if at is None else _format_time(at) for name, at in times.items()},
    }


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
