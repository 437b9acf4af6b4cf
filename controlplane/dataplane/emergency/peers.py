"""The other data planes, with which this one exchanges emergency orders.

Each accepted order is pushed to all of them at once. Besides, each pair compares its orders every
second while the database is unreachable, and every ten seconds otherwise.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from controlplane.core.degradation_levels import DEGRADED, Cause
from controlplane.core.egress_guard.name_resolution import Resolve, resolve
from controlplane.core.errors import DomainError, Unauthenticated, Unavailable
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.memory.served_copy import JSON
from controlplane.dataplane.serving.call import Call, drain_body
from controlplane.dataplane.serving.responses import NO_STORE, Response
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.order_journal import SIGNED_ORDER, verify_order
from switches.emergency.orders import Order

from .exchange_messages import (
    HEADER,
    MAX_SKEW_SECONDS,
    REPLY,
    REQUEST,
    ExchangeRequest,
    InvalidMessage,
    PeerKeys,
    Sender,
    Stamp,
    peer_keys,
)
from .host_lookup import HostLookup
from .order_exchange import OrderExchange, OrderFormat
from .peer import ACTIVE_INTERVAL_SECONDS, IDLE_INTERVAL_SECONDS, Peer
from .peer_transport import CONNECT_SECONDS, REQUEST_SECONDS, SignedTransport
from .service import EmergencyOrders

if TYPE_CHECKING:
    import httpx

PUSH_SECONDS = 1.0
RESOLVE_SECONDS = 5.0
UNREACHABLE_SECONDS = 30.0
"""Time after which an unreachable data plane is reported as a cause of degradation."""
CALLER_SECONDS = 60.0
"""Time for which a data plane counts after its last request."""
KEEPALIVE_SECONDS = 15.0
MAX_NAMES = 256
"""Maximum number of remembered names of data planes."""
MAX_EXCHANGES = 8
"""Maximum number of requests of peers that are worked on at the same time."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Host:
    """The host of a URL of data planes, its addresses, and the pool of connections to it."""

    url: "httpx.URL"
    client: "httpx.AsyncClient"
    lookup: HostLookup


class Peers:
    """Exchange of orders with the data planes of the configuration, and answers to theirs.

    If there is one URL, each address of its host is a data plane; otherwise each URL is one. Call
    :meth:`configure` before the first request.
    """

    def __init__(self, state: State, service: EmergencyOrders, exchange: OrderExchange) -> None:
        self.plane = ""
        self.process = exchange.process
        self.keys: Sequence[PeerKeys] = ()
        self.resolver: Resolve = resolve
        self._urls: Sequence[str] = ()
        self._state = state
        self._service = service
        self._exchange = exchange
        self._peers: dict[str, Peer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._callers: dict[str, float] = {}
        """Monotonic time of the last request of other data planes, by name."""
        self._permits = asyncio.Semaphore(MAX_EXCHANGES)

    def configure(self, plane: str, order_keys: Iterable[bytes], urls: Sequence[str]) -> None:
        """Take part as the data plane `plane`, with those at `urls` that share `order_keys`."""
        self.plane = plane
        self.keys = peer_keys(order_keys)
        self._urls = urls

    @property
    def orders(self) -> OrderSet:
        return self._state.orders

    @property
    def news(self) -> object:
        return self._state.orders

    def interval_seconds(self, is_reachable: bool | None) -> float:
        """Return a short interval while the database can't take over the orders."""
        is_idle = self._state.database_reachable and is_reachable
        return IDLE_INTERVAL_SECONDS if is_idle else ACTIVE_INTERVAL_SECONDS

    @property
    def exchanges(self) -> Counter[str]:
        return self._state.exchanges

    def now(self) -> float:
        return self._state.now()

    def unix(self) -> float:
        return self._state.unix()

    def sender(self) -> Sender:
        return self._exchange.sender()

    def record_holder(self, plane: str, order_ids: Iterable[UUID]) -> None:
        self._service.record_holder(plane, order_ids)

    def others(self) -> list[Peer]:
        """Return the configured peers without this data plane itself."""
        return [peer for peer in self._peers.values() if not peer.is_own]

    def count_planes(self) -> int:
        """Return the number of data planes, with this one; those of one name count once."""
        recent = self.now() - CALLER_SECONDS
        names = {self.plane, *(name for name, at in self._callers.items() if at >= recent)}
        names |= {peer.plane for peer in self.others() if peer.plane}
        return len(names) + sum(not peer.plane for peer in self.others())

    async def push(self, orders: Iterable[Order]) -> None:
        """Send orders to all peers, for at most a second, and record who has stored them.

        Peers that are slower get the orders, too.
        """
        sent, awaited = list(orders), []
        for peer in self._peers.values():
            if not peer.is_this_process:
                futures = peer.push(sent)
                awaited += [] if peer.is_own else futures
        if awaited:
            await asyncio.wait(awaited, timeout=PUSH_SECONDS)

    async def receive(self, texts: Iterable[str], plane: str) -> list[Order]:
        """Verify, store and serve signed orders from `plane`; return those that are valid."""
        return await self._exchange.receive(texts, plane, self._read_order)

    async def run(self) -> None:
        """Exchange orders with all peers, and follow changes of their addresses, until canceled."""
        while self._urls:
            try:
                await self._follow_hosts()
            except Exception as error:
                log.error("peers.failed", kind=type(error).__name__, error=str(error))
            await asyncio.sleep(RESOLVE_SECONDS)

    async def _follow_hosts(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            hosts = [await self._open(url, stack) for url in self._urls]
            try:
                while True:
                    await asyncio.gather(*(host.lookup.refresh() for host in hosts))
                    self._update_peers(hosts)
                    self._state.peer_statuses = Counter(peer.status for peer in self.others())
                    self._state.peers = self._find_cause()
                    await asyncio.sleep(RESOLVE_SECONDS)
            finally:
                await self._stop([*self._tasks])

    async def emergency_exchange(self, _state: State, call: Call) -> Response:
        """Merge the orders of a data plane, and return those that it lacks.

        Raise :class:`Unauthenticated` unless a data plane signed the request just now.
        """
        try:
            stamp, keys = self._authenticate(call)
        except DomainError:
            await drain_body(call.receive)
            raise
        await call.read_body()
        if not stamp.covers(call.body):
            raise Unauthenticated("The signature does not cover the body.")
        try:
            request = ExchangeRequest.parse(call.body)
        except InvalidMessage as error:
            raise DomainError(f"The message is not valid: {error}.") from error
        async with self._permits:
            form = OrderFormat(self._read_order, partial(_sign_order, keys.order))
            reply = await self._exchange.answer(request, form, is_holder=True)
            self._record_caller(request.sender.plane)
        body = reply.serialize()
        signed = Stamp.make(REPLY, body, keys.message, at=self.unix(), nonce=stamp.nonce)
        length = (b"content-length", b"%d" % len(body))
        return 200, [JSON, length, NO_STORE, (HEADER.lower().encode(), signed.header)], body

    def _authenticate(self, call: Call) -> tuple[Stamp, PeerKeys]:
        """Return the stamp of a request, and the keys with which it was signed."""
        if not self.keys:
            raise Unavailable("This data plane is not configured yet.")
        try:
            stamp = Stamp.parse(call.headers.get(HEADER.lower().encode(), b""))
        except InvalidMessage as error:
            raise Unauthenticated(f"Only data planes may exchange orders: {error}.") from error
        if (keys := stamp.find_key(REQUEST, self.keys)) is None:
            raise Unauthenticated("The signature is not valid: data planes share SECRET_KEY.")
        now = self.unix()
        if abs(stamp.at - now) > MAX_SKEW_SECONDS:
            answer = Stamp.make(REPLY, b"", keys.message, at=now, nonce=stamp.nonce)
            message = "The clocks of the two data planes differ by more than a minute."
            raise Unauthenticated(message, stamp=answer.header.decode())
        return stamp, keys

    def _record_caller(self, plane: str) -> None:
        self._callers.pop(plane, None)
        self._callers[plane] = self.now()  # The latest last.
        if len(self._callers) > MAX_NAMES:
            del self._callers[next(iter(self._callers))]

    def _read_order(self, text: str) -> Order:
        return verify_order(text.encode(), [key.order for key in self.keys])

    async def _open(self, text: str, stack: contextlib.AsyncExitStack) -> Host:
        # In a thread, because the first import takes long and would block the event loop.
        await asyncio.to_thread(import_module, "httpx")
        import httpx

        url = httpx.URL(text)
        is_tls = url.scheme == "https"
        context = await asyncio.to_thread(httpx.create_ssl_context) if is_tls else False
        client = httpx.AsyncClient(
            verify=context,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(REQUEST_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE_SECONDS),
        )
        await stack.enter_async_context(client)
        port = url.port or (443 if is_tls else 80)
        return Host(url, client, HostLookup(url.raw_host.decode("ascii"), port, self.resolver))

    def _update_peers(self, hosts: Sequence[Host]) -> None:
        """Begin to exchange orders with new peers, and stop for addresses that have gone."""
        wanted: dict[str, tuple[Host, tuple[str, ...]]] = {}
        for host in hosts:
            addresses = host.lookup.addresses
            if len(hosts) > 1 or not addresses:
                wanted[str(host.url)] = host, addresses
            else:
                wanted |= {f"{host.url} {address}": (host, (address,)) for address in addresses}
        for key in self._tasks.keys() - wanted.keys():
            self._tasks.pop(key).cancel()
            del self._peers[key]
        for key, (host, addresses) in wanted.items():
            if key not in self._peers:
                transport = SignedTransport(self, host.url, host.client)
                self._peers[key] = Peer(self, transport)
                self._tasks[key] = asyncio.create_task(self._peers[key].run())
            self._peers[key].transport.addresses = addresses

    async def _stop(self, keys: Iterable[str]) -> None:
        tasks = [self._tasks.pop(key) for key in keys]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _find_cause(self) -> Cause | None:
        """Return the degradation that data planes are unreachable; None if they are not."""
        since = self.now() - UNREACHABLE_SECONDS
        others = self.others()
        lost = [peer for peer in others if peer.is_reachable is False and peer.changed_at < since]
        return build_cause([peer.label for peer in lost], len(others)) if lost else None


def _sign_order(key: bytes, order: Order) -> str:
    return SIGNED_ORDER.sign(order, key).decode()


def build_cause(lost: Sequence[str], total: int) -> Cause:
    """Return the degradation that `lost` of `total` other data planes are unreachable."""
    names = ", ".join(sorted(set(lost)))
    return Cause(
        DEGRADED,
        "data planes",
        f"{len(lost)} of {total} other data planes can't be reached from this one: {names}.",
        fails=("Spreading emergency orders to these data planes without PostgreSQL and Redis",),
        works=("Emergency orders on each data plane",),
    )
