"""Request handler for the emergency orders of relays, on data planes and on relays.

A relay is trusted less than a data plane. It can add orders that a relay has signed, and withdraw
those that it has signed itself; only the database closes orders.
"""

import asyncio
from uuid import UUID

import structlog

from controlplane.core.errors import DomainError
from controlplane.core.private_files import InvalidFile
from controlplane.core.signatures import PublicKey
from controlplane.dataplane.emergency.exchange_messages import ExchangeRequest, InvalidMessage
from controlplane.dataplane.emergency.order_exchange import OrderExchange, OrderFormat
from controlplane.dataplane.emergency.service import MAX_OPEN_ORDERS
from controlplane.dataplane.memory.credentials import authenticate
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.memory.served_copy import JSON
from controlplane.dataplane.serving.call import Call
from controlplane.dataplane.serving.responses import NO_STORE, Response
from controlplane.dataplane.state import State
from switches.emergency.orders import Order

from .order_format import read_relay_order, write_order

SCOPE = "relay"
MAX_EXCHANGES = 8
"""Maximum number of requests of relays that are worked on at the same time."""

log = structlog.get_logger(__name__)


class RelayOrdersEndpoint:
    """Handler of `POST /api/v1/relay/orders`."""

    def __init__(self, state: State, exchange: OrderExchange) -> None:
        self._state = state
        self._exchange = exchange
        self._permits = asyncio.Semaphore(MAX_EXCHANGES)
        self._counted: tuple[OrderSet, int] = OrderSet(), 0
        """The orders that were counted last, and how many of them are of relays."""

    async def relay_orders(self, state: State, call: Call) -> Response:
        """Merge the orders of a relay, and return those that it lacks."""
        try:
            request = ExchangeRequest.parse(call.body)
        except InvalidMessage as error:
            raise DomainError(f"The message is not valid: {error}.") from error
        known = state.orders.orders
        async with self._permits:
            form = OrderFormat(self._read_order, write_order)
            # Names of holders are not recorded: a relay could claim those of data planes.
            reply = await self._exchange.answer(request, form, is_holder=False)
        self._log_received(call, request, [key for key in reply.stored if key not in known])
        body = reply.serialize()
        return 200, [JSON, (b"content-length", b"%d" % len(body)), NO_STORE], body

    def _read_order(self, text: str) -> Order:
        order = read_relay_order(text)
        if order.id not in self._state.orders.orders and self._count() >= MAX_OPEN_ORDERS:
            raise InvalidFile(f"{MAX_OPEN_ORDERS:,} orders of relays are open")
        return order

    def _count(self) -> int:
        """Return the number of orders and withdrawals of relays that are not closed."""
        orders = self._state.orders
        if self._counted[0] is not orders:
            number = sum(order.relay is not None for order in orders.unclosed.values())
            self._counted = orders, number
        return self._counted[1]

    def _log_received(self, call: Call, request: ExchangeRequest, order_ids: list[UUID]) -> None:
        if not order_ids:
            return
        token = authenticate(self._state.tokens, call.headers, SCOPE, clock=self._state.unix)
        orders = self._state.orders.orders
        for order in (orders[key] for key in order_ids if key in orders):
            key = "" if order.relay is None else PublicKey.parse(order.relay.key).id
            what = {"order": str(order.id), "action": order.action, "switch": order.switch}
            sender = {"from": request.sender.plane, "token": token.name}
            log.warning("emergency_order.received", **what, relay=order.plane, key=key, **sender)
