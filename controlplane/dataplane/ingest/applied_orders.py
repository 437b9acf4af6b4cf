"""The sets of emergency orders that instances apply, by the hash that they send. Memory only."""

from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping

from controlplane.dataplane.memory.served_copy import Copy
from switches.emergency.orders import hash_ids
from switches.snapshot import OrderIds

MAX_SETS = 100


class AppliedOrders:
    """The latest sets of orders that this process served, or that instances reported.

    An instance's poll has only a hash of the orders that it applies, so that polls stay cheap.
    """

    def __init__(self) -> None:
        self._sets: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._served: OrderIds | None = None

    def add_served(self, copy: Copy) -> None:
        """Remember the open orders of a served copy."""
        if copy.orders is self._served:
            return
        self._served = copy.orders
        if ids := frozenset(copy.orders.open):
            self._add(hash_ids(ids), ids)
            # Clients that know nothing of orders return the hash of the copy, which has more.
            self._add(copy.orders_hash, ids)

    def add_reported(self, ids: Collection[str]) -> str:
        """Remember the orders that an instance reports; return their hash."""
        orders_hash = hash_ids(ids)
        if orders_hash and orders_hash not in self._sets:
            self._add(orders_hash, frozenset(ids))
        return orders_hash

    def count(self, instances_by_hash: Mapping[str, int]) -> Counter[str]:
        """Return how many instances apply each order, given how many sent each hash."""
        counts = Counter[str]()
        for orders_hash, instances in instances_by_hash.items():
            for order_id in self._sets.get(orders_hash, ()):
                counts[order_id] += instances
        return counts

    def _add(self, orders_hash: str, ids: frozenset[str]) -> None:
        self._sets[orders_hash] = ids
        self._sets.move_to_end(orders_hash)
        if len(self._sets) > MAX_SETS:
            self._sets.popitem(last=False)
