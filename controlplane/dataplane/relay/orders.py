"""Emergency orders of a relay: exchanges them with its upstreams.

Orders of others come with the upstream's stream (:meth:`RelayOrders.receive_event`). Those that
this relay has accepted are sent to all upstreams at once, and every second until one has them.
Relays of one region exchange orders as data planes do, so that one can be cut off together with
the others; their messages are signed with a key derived from the token that they share.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any
from uuid import UUID

import orjson
import structlog

from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.emergency.exchange_messages import Sender
from controlplane.dataplane.emergency.folder import watch_folder
from controlplane.dataplane.emergency.order_exchange import OrderExchange
from controlplane.dataplane.emergency.peer import (
    ACTIVE_INTERVAL_SECONDS,
    IDLE_INTERVAL_SECONDS,
    Peer,
)
from controlplane.dataplane.emergency.peers import PUSH_SECONDS, Peers
from controlplane.dataplane.emergency.service import EmergencyOrders
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.order_journal import order_key
from switches.emergency.orders import Order

from .order_format import read_order
from .upstream_transport import UpstreamTransport, make_client

NO_ORDERS_SECONDS = 60.0
"""Interval of exchanges while there are no orders: those of the upstream come with its stream."""

log = structlog.get_logger(__name__)


class RelayOrders:
    """Exchange of orders between a relay, its upstreams, and its `peers`."""

    def __init__(
        self,
        config: RelayConfig,
        state: State,
        service: EmergencyOrders,
        exchange: OrderExchange,
        peers: Peers,
    ) -> None:
        self.plane = config.plane
        self.process = exchange.process
        self._config = config
        self._state = state
        self._service = service
        self._exchange = exchange
        self._peers = peers
        self._upstreams: list[Peer] = []
        self._seen: OrderSet | None = None
        self._confirmed: set[UUID] = set()
        """Orders that an upstream has."""
        self._unconfirmed: frozenset[UUID] = frozenset()
        """Orders of relays that no upstream is known to have."""

    def tasks(self) -> tuple[Coroutine[Any, Any, None], ...]:
        """Sign and share accepted orders from now on, and return the tasks to run.

        Raise :class:`WrongVariable` if the token can't be read.
        """
        service, config = self._service, self._config
        service.relay_key = config.order_signing_key
        service.share, service.count_planes = self.push, self.count_planes
        if config.relays:
            keys = [order_key(config.read_token())]
            self._peers.configure(config.plane, keys, config.relays)
        return self.run(), self._peers.run(), watch_folder(service)

    @property
    def orders(self) -> OrderSet:
        return self._state.orders

    @property
    def exchanges(self) -> Counter[str]:
        return self._state.exchanges

    @property
    def news(self) -> object:
        """The ids of orders of relays that no upstream is known to have."""
        unconfirmed = self._list_unconfirmed()
        if not unconfirmed <= self._unconfirmed:
            self._unconfirmed = unconfirmed
        return self._unconfirmed

    def interval_seconds(self, is_reachable: bool | None) -> float:
        """Return a short interval while no upstream has confirmed an order."""
        if self._list_unconfirmed():
            return ACTIVE_INTERVAL_SECONDS
        is_idle = is_reachable and not any(map(self._service.is_own, self.orders.unclosed.values()))
        return NO_ORDERS_SECONDS if is_idle else IDLE_INTERVAL_SECONDS

    def now(self) -> float:
        return self._state.now()

    def sender(self) -> Sender:
        return self._exchange.sender()

    def record_holder(self, plane: str, order_ids: Iterable[UUID]) -> None:
        """Record that the upstream `plane` has these orders on its disk."""
        ids = list(order_ids)
        self._confirmed.update(ids)
        self._service.record_holder(plane, ids)

    def count_planes(self) -> int:
        """Return the number of upstreams and relays here; those of one name count once."""
        others = [*self._upstreams, *self._peers.others()]
        names = {other.plane for other in others if other.plane}
        return len({self.plane, *names}) + sum(not other.plane for other in others)

    async def push(self, orders: Sequence[Order]) -> None:
        """Send accepted orders to all upstreams and peers, and wait for at most a second."""
        sent = [each for upstream in self._upstreams for each in upstream.push(orders)]
        await asyncio.gather(
            self._peers.push(orders),
            *([asyncio.wait(sent, timeout=PUSH_SECONDS)] if sent else []),
        )

    async def receive(self, texts: Iterable[str], plane: str) -> list[Order]:
        """Verify, store and serve orders from an upstream; return those that are valid."""
        received = await self._exchange.receive(texts, plane, read_order)
        self._confirmed.update(order.id for order in received)
        return received

    async def receive_event(self, data: bytes) -> None:
        """Store and serve the orders in an event `orders` of the upstream's stream.

        Each event has all orders, so those that are known are skipped without reading them again.
        """
        try:
            documents = orjson.loads(data)["orders"]
            texts = [orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in documents]
        except (orjson.JSONDecodeError, LookupError, TypeError) as error:
            log.error("emergency_order.event_refused", error=str(error))
            return
        known = {order.serialized: key for key, order in self.orders.unclosed.items()}
        self._confirmed.update(known[text] for text in texts if text in known)
        await self.receive([text.decode() for text in texts if text not in known], "upstream")

    async def run(self) -> None:
        """Exchange orders with all upstreams until canceled."""
        config = self._config
        async with await make_client(config) as client:
            for url in config.upstreams:
                self._upstreams.append(Peer(self, UpstreamTransport(config, url, client)))
            async with asyncio.TaskGroup() as group:
                for upstream in self._upstreams:
                    group.create_task(upstream.run())

    def _list_unconfirmed(self) -> frozenset[UUID]:
        if self._seen is not self.orders:
            self._seen = self.orders
            self._confirmed &= self.orders.unclosed.keys()
        return frozenset(
            key
            for key, order in self.orders.unclosed.items()
            if order.relay is not None and key not in self._confirmed
        )
