"""The emergency orders of a data plane: a two-phase set, merged by union. Pure.

Orders and withdrawals are only ever added, and a withdrawal wins, so that the order of arrival does
not matter. Only the database closes orders: a peer that lies can't release a switch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from switches.emergency.orders import ENGAGE, Order, derive_id, hash_ids
from switches.snapshot import LISTED, OrderIds

CERTAIN = timedelta(days=29)
"""Time for which every read of the database returns a closed order; the last day is a margin."""


class ClosedOrder(NamedTuple):
    """An order that the database has closed: when, and its :attr:`Order.subject`."""

    at: datetime
    subject: str


ClosedOrders = Mapping[UUID, ClosedOrder]


@dataclass(frozen=True)
class OrderSet:
    """All known orders and withdrawals, by id, and those that the database has closed.

    Closed orders stay known, because an older backup of the database may be restored. `settled` are
    orders that the database closed before it was restored and that must not be reopened. Instances
    are immutable, so that a reader never sees a partial change.
    """

    orders: Mapping[UUID, Order] = field(default_factory=dict)
    closed: ClosedOrders = field(default_factory=dict)
    settled: frozenset[UUID] = frozenset()

    @cached_property
    def withdrawn(self) -> Mapping[UUID, Order]:
        """The earliest withdrawal of each withdrawn order, by the order's id.

        An id may have been given to two orders: the withdrawal names the switch of one of them,
        which other data planes may know under an id of its own. A withdrawal by a relay has no
        effect on orders of others: a relay is trusted less than a data plane.
        """
        found: dict[UUID, Order] = {}
        for order in sorted(self.orders.values(), key=_precedence):
            if order.withdraws is None:
                continue
            for key in (order.withdraws, derive_id(order.withdraws, order.switch)):
                withdrawn = self.orders.get(key)
                if withdrawn is not None and order.may_withdraw(withdrawn):
                    found.setdefault(key, order)
        return found

    @cached_property
    def open(self) -> Mapping[UUID, Order]:
        """The orders in force, the earliest first."""
        in_force = (
            order
            for order in self.unclosed.values()
            if order.action == ENGAGE and order.id not in self.withdrawn
        )
        return {order.id: order for order in sorted(in_force, key=_precedence)}

    @cached_property
    def by_switch(self) -> Mapping[str, Order]:
        """The earliest open order of each switch."""
        found: dict[str, Order] = {}
        for order in self.open.values():
            found.setdefault(order.switch, order)
        return found

    @cached_property
    def hash(self) -> str:
        """Eight hexadecimal digits that identify open and withdrawn orders; "" without any.

        Without withdrawn orders it is the hash of the open ids, as clients compute it. Orders that
        the database has closed don't count, because they come with a new version of the snapshot.
        """
        return hash_ids([*map(str, self.open), *(f"-{key}" for key in self._withdrawn_unclosed)])

    @cached_property
    def _withdrawn_unclosed(self) -> frozenset[UUID]:
        return frozenset(self.withdrawn.keys() - self.closed.keys() - self.settled)

    @cached_property
    def unclosed(self) -> Mapping[UUID, Order]:
        """Orders and withdrawals that the database has not closed; planes exchange these."""
        return {
            key: order
            for key, order in self.orders.items()
            if key not in self.closed and key not in self.settled
        }

    @cached_property
    def listed(self) -> Sequence[Order]:
        """The orders that are open or withdrawn and not closed, the latest first."""
        engages = (order for order in self.unclosed.values() if order.action == ENGAGE)
        return sorted(engages, key=_precedence, reverse=True)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of :attr:`unclosed`, in hexadecimal; two planes with the same one are in sync."""
        digest = sha256()
        for order in sorted(self.unclosed.values(), key=_precedence):
            digest.update(order.serialized)
        return digest.hexdigest()

    def listed_ids(self, now: datetime) -> OrderIds:
        """Return the ids that a snapshot at `now` lists as open, and as no longer in force."""
        ended = {key for key, closed in self.closed.items() if now - closed.at < LISTED}
        # Times of other planes may be wrong, so withdrawn orders are listed until they are closed.
        ended |= self._withdrawn_unclosed | self.settled
        return OrderIds(tuple(sorted(map(str, self.open))), tuple(sorted(map(str, ended))))

    def add(self, news: Iterable[Order]) -> "OrderSet":
        """Return the union with `news`; this set itself if it has them all already.

        Of two orders with one id, from a request that was sent to two planes, the earlier is kept.
        If their subjects differ, the new one is kept under an id of its own.
        """
        orders = dict(self.orders)
        for order in news:
            kept = orders.get(order.id)
            if kept is not None and kept.subject != order.subject:
                order = order.with_own_id()
                kept = orders.get(order.id)
            if kept is None or order.precedence < kept.precedence:
                orders[order.id] = order
        return self if orders == self.orders else self._with_orders(orders)

    def close(
        self, closed: ClosedOrders, was_engaged: Callable[[str], bool] = lambda _switch: True
    ) -> "OrderSet":
        """Return this set with the orders `closed` by the database, which were read with its copy.

        `closed` holds all orders closed lately, and those of :meth:`uncertain_ids` that are closed.
        A restored backup may lack the end and the episode of an order that was closed before. Such
        an order is reopened if its switch was engaged until now, by `was_engaged`. Otherwise a
        person has released the switch, and the order is settled. An order whose id was given to
        another order, too, which the database has closed, stays open under an id of its own.
        """
        released = {
            key
            for key in self.closed.keys() - closed.keys()
            if (order := self.orders.get(key)) is not None and not was_engaged(order.switch)
        }
        if closed == self.closed and not released:
            return self
        settled = self.settled | released
        return replace(self, closed=closed, settled=settled)._with_orders(self.orders)

    def uncertain_ids(self, now: datetime) -> set[UUID]:
        """Return the known orders that may be closed or not, unless a read asks for them."""
        return {
            key
            for key in self.orders
            if (known := self.closed.get(key)) is None or now - known.at > CERTAIN
        }

    def forget(self, ids: Iterable[UUID]) -> "OrderSet":
        """Return this set without the orders `ids`, which the database closed long ago."""
        gone = frozenset(ids) & self.orders.keys()
        if not gone:
            return self
        kept = {key: order for key, order in self.orders.items() if key not in gone}
        return replace(self, orders=kept, settled=self.settled - gone)

    def _with_orders(self, orders: Mapping[UUID, Order]) -> "OrderSet":
        own = dict(orders)
        for key, order in orders.items():
            closed = self.closed.get(key)
            if closed is not None and closed.subject != order.subject:
                del own[key]
                own.setdefault((apart := order.with_own_id()).id, apart)
        return replace(self, orders=own)


def _precedence(order: Order) -> tuple[datetime, str, bytes]:
    return order.precedence
