"""One other data plane: exchanges orders with it, and records whether it answers."""

import asyncio
import contextlib
import random
from collections import Counter, deque
from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

import structlog

from controlplane.dataplane.memory.order_set import OrderSet
from switches.emergency.orders import Order

from . import exchange_messages as messages
from .exchange_messages import ExchangeReply, ExchangeRequest, Sender
from .peer_transport import ExchangeUnsupported

ACTIVE_INTERVAL_SECONDS = 1.0
"""Interval of exchanges while the database is unreachable or the data planes differ."""
IDLE_INTERVAL_SECONDS = 10.0
"""Interval of exchanges otherwise."""
MAX_PENDING = 5000

log = structlog.get_logger(__name__)


class PeerTransport(Protocol):
    """The way to another data plane."""

    addresses: tuple[str, ...]

    @property
    def url(self) -> str: ...

    def accepts(self, order: Order) -> bool:
        """Return True if this order may be sent that way."""

    def write(self, order: Order) -> str:
        """Return the text of an order, for a message."""

    async def send(self, request: ExchangeRequest) -> ExchangeReply:
        """Send a request, and return the verified reply; raise :class:`PeerFailed`."""


class LocalPlane(Protocol):
    """The data plane of this process, for its peers."""

    plane: str
    process: str

    @property
    def orders(self) -> OrderSet: ...

    @property
    def news(self) -> object:
        """An object that is replaced when there are orders that peers may lack."""

    def interval_seconds(self, is_reachable: bool | None) -> float:
        """Return the time between two exchanges with a peer that answers or not."""

    @property
    def exchanges(self) -> Counter[str]:
        """Number of exchanges with peers, by outcome."""

    def now(self) -> float:
        """Return monotonic seconds."""

    def sender(self) -> Sender: ...

    async def receive(self, texts: Iterable[str], plane: str) -> list[Order]:
        """Verify, store and serve signed orders; return those that are valid."""

    def record_holder(self, plane: str, order_ids: Iterable[UUID]) -> None:
        """Record that a data plane has these orders on its disk."""


class Peer:
    """A data plane that `transport` leads to, known by its name once it has answered."""

    def __init__(self, local: LocalPlane, transport: PeerTransport) -> None:
        self.transport = transport
        self.plane = ""
        self.process = ""
        self.is_reachable: bool | None = None
        """None before the first exchange."""
        self.is_older = False
        """True if it is of a version that exchanges no orders."""
        self.changed_at = local.now()
        """Monotonic time at which it became reachable or unreachable."""
        self._local = local
        self._compared: tuple[str, str] | None = None
        """Digests of both data planes after the last comparison."""
        self._pending: deque[tuple[Order, asyncio.Future[bool]]] = deque()
        self._woken = asyncio.Event()

    @property
    def status(self) -> str:
        """The word for its state in metrics."""
        if self.is_older:
            return "older"
        return "reachable" if self.is_reachable else "unreachable"

    @property
    def is_own(self) -> bool:
        """True if this data plane itself answers at the address, maybe another process of it."""
        return self.plane == self._local.plane

    @property
    def is_this_process(self) -> bool:
        return self.process == self._local.process

    @property
    def label(self) -> str:
        """The name of the peer, or its address before the name is known."""
        return self.plane or self.transport.url

    def push(self, orders: Iterable[Order]) -> list[asyncio.Future[bool]]:
        """Send orders as soon as possible; return a future each: True if stored."""
        loop = asyncio.get_running_loop()
        futures = []
        for order in orders:
            if len(self._pending) >= MAX_PENDING:
                break  # The next comparison finds them.
            future: asyncio.Future[bool] = loop.create_future()
            self._pending.append((order, future))
            futures.append(future)
        self._woken.set()
        return futures

    async def run(self) -> None:
        """Exchange orders with the peer, until canceled."""
        try:
            while True:
                self._woken.clear()
                try:
                    await self._exchange()
                except Exception as error:
                    self._record_failure(error)
                else:
                    self._record_success()
                await self._pause()
        finally:
            self._drop_pending()

    async def _exchange(self) -> None:
        local = self._local
        reply = await self._send()
        while self._pending:
            reply = await self._send()
        digests = local.orders.digest, reply.sender.digest
        if digests[0] == digests[1]:
            self._record_holder(reply, local.orders.unclosed)
        elif digests != self._compared:
            await self._compare()

    async def _compare(self) -> None:
        """Get the orders that only the peer has, and send it those that it lacks."""
        local = self._local
        while True:
            before = local.orders
            reply = await self._send(listing=messages.list_orders(before.unclosed.values()))
            self._record_holder(reply, before.unclosed.keys() - set(reply.wanted))
            await local.receive(reply.orders, self.label)
            found = [before.orders[key] for key in reply.wanted if key in before.orders]
            wanted = [order for order in found if self.transport.accepts(order)]
            digest = reply.sender.digest
            while wanted:
                batch, number = messages.write_batch(wanted, self.transport.write)
                digest = (await self._send(batch)).sender.digest
                wanted = wanted[number:]
            if not reply.more or local.orders is before:
                break
        self._compared = local.orders.digest, digest

    def _record_holder(self, reply: ExchangeReply, order_ids: Iterable[UUID]) -> None:
        if reply.sender.all_stored:
            self._local.record_holder(reply.sender.plane, order_ids)

    async def _send(
        self, batch: tuple[str, ...] = (), listing: tuple[str, ...] | None = None
    ) -> ExchangeReply:
        """Send signed orders, pending ones too, and return the verified reply."""
        pending = list(self._pending)
        signed, number = messages.write_batch((order for order, _ in pending), self.transport.write)
        for _ in range(number):
            self._pending.popleft()
        sent = pending[:number]
        try:
            reply = await self.transport.send(
                ExchangeRequest(sender=self._local.sender(), orders=batch + signed, listing=listing)
            )
        except BaseException:
            _resolve(sent, set())
            raise
        _resolve(sent, set(reply.stored))
        self.plane, self.process = reply.sender.plane, reply.sender.process
        self._local.record_holder(self.plane, reply.stored)
        return reply

    async def _pause(self) -> None:
        """Wait until the next exchange is due, or until there are orders to push."""
        local = self._local
        began, seen = local.now(), local.news
        jitter = random.uniform(0.8, 1.0)  # noqa: S311
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ACTIVE_INTERVAL_SECONDS * jitter):
                    await self._woken.wait()
                    return
            interval = IDLE_INTERVAL_SECONDS
            if not (self.is_this_process or self.is_older):
                if local.news is not seen:
                    return
                interval = local.interval_seconds(self.is_reachable)
            is_due = local.now() - began >= interval * jitter
            if is_due or interval <= ACTIVE_INTERVAL_SECONDS:
                return

    def _record_success(self) -> None:
        self._local.exchanges["succeeded"] += 1
        if self.is_reachable is False or self.is_older:
            log.info("peer.reachable", peer=self.label, url=self.transport.url)
        if self.is_reachable is not True:
            self.is_reachable, self.changed_at = True, self._local.now()
        self.is_older = False

    def _record_failure(self, error: Exception) -> None:
        self._local.exchanges["failed"] += 1
        self._drop_pending()
        self._compared = None
        is_older = isinstance(error, ExchangeUnsupported)
        if self.is_reachable is not is_older or is_older is not self.is_older:
            text = str(error) or type(error).__name__
            event = "peer.older" if is_older else "peer.unreachable"
            where = {"url": self.transport.url, "at": ", ".join(self.transport.addresses)}
            log.warning(event, peer=self.label, **where, error=text)
            self.is_reachable, self.changed_at = is_older, self._local.now()
        self.is_older = is_older

    def _drop_pending(self) -> None:
        _resolve(self._pending, set())
        self._pending.clear()


def _resolve(sent: Iterable[tuple[Order, asyncio.Future[bool]]], stored: set[UUID]) -> None:
    for order, future in sent:
        if not future.done():
            future.set_result(order.id in stored)
