"""This process in exchanges of orders: merges what others send, and answers what it has."""

import asyncio
import secrets
from collections.abc import Callable, Iterable
from typing import NamedTuple

import structlog

from controlplane.core.private_files import InvalidFile
from controlplane.dataplane.state import State
from switches.emergency.orders import Order

from . import exchange_messages as messages
from .exchange_messages import ExchangeReply, ExchangeRequest, Sender
from .service import EmergencyOrders

MAX_REFUSED = 256
"""Maximum number of remembered texts of refused orders."""
VERIFIED_AT_ONCE = 20

ReadOrder = Callable[[str], Order]
"""Returns the verified order in a text; raises :class:`InvalidFile`."""

log = structlog.get_logger(__name__)


class OrderFormat(NamedTuple):
    """The form of orders in messages of one kind."""

    read: ReadOrder
    write: Callable[[Order], str]


class OrderExchange:
    """Receives the orders of messages, and answers messages, whoever sent them."""

    def __init__(self, state: State, service: EmergencyOrders) -> None:
        self.process = secrets.token_hex(16)
        self._state = state
        self._service = service
        self._refused: set[str] = set()

    def sender(self) -> Sender:
        orders, service = self._state.orders, self._service
        return Sender(
            plane=service.plane,
            process=self.process,
            digest=orders.digest,
            all_stored=all(map(service.has_stored, orders.unclosed)),
        )

    async def receive(self, texts: Iterable[str], source: str, read: ReadOrder) -> list[Order]:
        """Verify, store and serve orders from `source`; return those that are valid."""
        verified = []
        for number, text in enumerate(texts, 1):
            try:
                verified.append(read(text))
            except InvalidFile as error:
                self._log_refused(source, text, str(error))
            if number % VERIFIED_AT_ONCE == 0:
                await asyncio.sleep(0)  # Other requests are answered in between.
        known = self._state.orders.orders
        self._state.orders_received += sum(order.id not in known for order in verified)
        if verified:
            await self._service.merge(verified)
        return verified

    async def answer(
        self, request: ExchangeRequest, form: OrderFormat, *, is_holder: bool
    ) -> ExchangeReply:
        """Merge the orders of a request, and return those that its sender lacks.

        If `is_holder`, what the sender claims to hold is recorded under its name.
        """
        service, sender = self._service, request.sender
        received = await self.receive(request.orders, sender.plane, form.read)
        stored = tuple(order.id for order in received if service.has_stored(order.id))
        orders = self._state.orders
        if is_holder and sender.all_stored and sender.digest == orders.digest:
            service.record_holder(sender.plane, orders.unclosed)
        if request.listing is None:
            return ExchangeReply(sender=self.sender(), stored=stored)
        if is_holder and sender.all_stored:
            service.record_holder(sender.plane, map(messages.parse_listed, request.listing))
        offered, wanted = messages.compare_listing(request.listing, orders)
        batch, number = messages.write_batch(offered, form.write)
        return ExchangeReply(
            sender=self.sender(),
            stored=stored,
            wanted=tuple(wanted),
            orders=batch,
            more=number < len(offered),
        )

    def _log_refused(self, source: str, text: str, why: str) -> None:
        if text not in self._refused and len(self._refused) < MAX_REFUSED:
            self._refused.add(text)
            log.warning("peer.order_refused", peer=source, why=why)
