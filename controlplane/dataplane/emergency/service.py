"""Accepts emergency orders: validates them, stores them on disk, serves and shares them.

Nothing here waits for PostgreSQL or Redis.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID, uuid4

import structlog

from controlplane.core.errors import Conflict, DomainError, InvalidInput, NotFound, Unavailable
from controlplane.core.http.parameters import MAX_NAMED, build_unknown_message
from controlplane.core.signatures import SigningKey
from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import ServingConfig
from controlplane.dataplane.memory.order_set import ClosedOrders
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.order_journal import OrderJournal
from switches.emergency.orders import (
    ENGAGE,
    WITHDRAW,
    Order,
    Orderer,
    plan_order,
    plan_withdrawal,
)
from switches.emergency.relay_signatures import sign_order

from .batched_serving import BatchedServing

ACCEPTED = 201
MAX_OPEN_ORDERS = 5000
CLOSED_RETENTION = timedelta(days=30)
"""Time for which closed orders are kept, in case an older backup of the database is restored."""
REPETITION_WINDOW = timedelta(minutes=10)
"""Time in which the repetition of an order that has ended since gets the same answer."""
DISK_SECONDS = 3.0
"""Longest wait for the disk to store an order."""
MERGE_SECONDS = 0.8
"""Longest wait for the disk to store orders of other data planes before they get an answer."""
DISK_SECONDS_PER_ORDER = 0.02
"""Additional time for each of several orders."""
DISK_THREADS = 4
STORE_BATCH_SIZE = 100

ShareOrders = Callable[[Sequence[Order]], Awaitable[None]]
"""Sends orders to the other data planes, for at most a second, and records who holds them."""

log = structlog.get_logger(__name__)


class SavedOrders(Protocol):
    """The orders no longer in force, in what is saved on disk."""

    @property
    def closed(self) -> ClosedOrders: ...

    @property
    def settled(self) -> frozenset[UUID]: ...

    @property
    def confirmed_at(self) -> datetime: ...


@dataclass(frozen=True)
class Acceptance:
    """An accepted order, the names of the data planes that hold it, and their total number."""

    order: Order
    accepted_by: tuple[str, ...]
    planes: int


class EmergencyOrders:
    """The emergency orders of one data plane. Call :meth:`configure` before the first request.

    `share` and `count_planes` are replaced by the exchange with other data planes. `on_news` is
    called after orders were added.
    """

    def __init__(self, state: State) -> None:
        self.plane = ""
        self.share: ShareOrders = _share_with_nobody
        self.count_planes: Callable[[], int] = lambda: 1
        self.on_news: Callable[[], None] = lambda: None
        self.relay_key: SigningKey | None = None
        """The key that signs accepted orders; None on a data plane, which is no relay."""
        self._state = state
        self._journal: OrderJournal | None = None
        self._stored: dict[UUID, Order] = {}
        """The orders on this plane's disk, as they were written."""
        self._elsewhere: dict[UUID, set[str]] = {}
        """Names of other data planes that hold an order, by the order's id."""
        self._merging: set[asyncio.Task[OSError | None]] = set()
        self._disk_fails = False
        self._serving = BatchedServing(state, self._notify)
        # Threads of their own, so that a disk that hangs occupies none that other work needs.
        self._disk = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="order-journal")
        self._accepting: dict[UUID, tuple[Order, asyncio.Future[Acceptance]]] = {}
        """Orders that are being accepted, by id."""

    def configure(self, config: ServingConfig) -> None:
        self.plane = config.plane
        if config.folder is not None and config.order_keys:
            self._journal = OrderJournal(config.folder, config.order_keys)

    async def restore(self) -> None:
        """Serve the orders on disk; without any if the folder can't be read, which is logged."""
        try:
            await self.load()
        except OSError as error:
            log.error("emergency_order.not_restored", error=str(error))

    async def load(self, executor: Executor | None = None) -> None:
        """Serve the orders on disk, also those that another process has stored since.

        Raise OSError if the folder can't be read.
        """
        if self._journal is None:
            return
        loop, known = asyncio.get_running_loop(), [*self._stored.values()]
        for order in await loop.run_in_executor(executor, self._journal.find_missing, known):
            if self._stored.get(order.id) == order:
                del self._stored[order.id]  # `store_missing` stores it again.
        loaded = await loop.run_in_executor(executor, self._journal.load, known)
        self._state.add_orders(loaded)
        kept = self._state.orders.orders
        for order in loaded:
            # There may be a file of each of two orders with one id, of which one is kept.
            if order.id not in self._stored or kept.get(order.id) == order:
                self._stored[order.id] = order

    async def forget_old(self, saved: SavedOrders) -> None:
        """Forget orders that were closed long ago, now that `saved` tells so on disk.

        Raise OSError if the disk fails.
        """
        orders, since = self._state.orders.orders, saved.confirmed_at - CLOSED_RETENTION
        old = [
            key
            for key, order in orders.items()
            if (key in saved.closed and saved.closed[key].at < since)
            or (key in saved.settled and order.at < since)
        ]
        if not old:
            return
        if self._journal is not None:
            await asyncio.to_thread(self._journal.remove, old)
        self._state.forget_orders(old)
        for key in old:
            self._stored.pop(key, None)
            self._elsewhere.pop(key, None)

    def changed_at(self) -> int:
        """Return a number that changes when another process adds an order. Blocking."""
        return 0 if self._journal is None else self._journal.changed_at()

    def has_stored(self, order_id: UUID) -> bool:
        return order_id in self._stored

    def holders(self, order_id: UUID) -> frozenset[str]:
        """Return the names of the data planes known to hold an order on disk."""
        own = {self.plane} if order_id in self._stored else set()
        return frozenset(own | self._elsewhere.get(order_id, set()))

    def record_holder(self, plane: str, order_ids: Iterable[UUID]) -> None:
        """Record that the data plane `plane` holds these orders on disk."""
        if plane != self.plane:
            for order_id in order_ids:
                self._elsewhere.setdefault(order_id, set()).add(plane)

    async def accept(self, request: Mapping[str, Any], by: Orderer) -> Acceptance:
        """Store, serve and share the order that `request` asks for; the same for a repetition.

        Raise :class:`InvalidInput`; :class:`NotFound` for an unknown order to withdraw;
        :class:`Forbidden` if the token is limited to other switches; :class:`Conflict` if the id
        was given to another request, the order to withdraw has left the data planes, or too many
        orders are open; :class:`Unavailable` if nobody can store it.
        """
        answers = self._state.order_answers
        try:
            accepted = await self._answer_request(request, by)
        except DomainError as error:
            answers[error.status] += 1
            raise
        answers[ACCEPTED] += 1
        return accepted

    async def _answer_request(self, request: Mapping[str, Any], by: Orderer) -> Acceptance:
        order = self._plan_order(request, by)
        self._require_within_limits(order)
        if self.relay_key is not None:
            order = sign_order(order, self.relay_key)
        orders = self._state.orders
        known = orders.orders.get(order.id)
        if known is None and self.relay_key is not None:
            self._refuse_given(order)
        other, accepting = self._accepting.get(order.id, (known, None))
        if other is not None and other.request != order.request:
            raise _make_id_taken(order)
        if known is None and order.withdraws is not None:
            known = orders.withdrawn.get(order.withdraws)
            if known is None and order.withdraws not in orders.unclosed:
                raise _make_taken_over(order.withdraws)
        self._refuse_ended(order, known)
        if known is not None and self.holders(known.id):
            return self._build_acceptance(known)
        if accepting is None:
            if known is None:
                self._require_room(order)
            # A task of its own, so that a client that disconnects doesn't stop it halfway.
            accepting = asyncio.ensure_future(self._store_and_share(known or order))
            self._accepting[order.id] = order, accepting
            accepting.add_done_callback(lambda _: self._accepting.pop(order.id))
        return await asyncio.shield(accepting)

    async def merge(self, orders: Iterable[Order]) -> None:
        """Serve orders that another data plane has accepted, and store them.

        They are served at once. If the disk takes long, they are stored after this returns.
        """
        received = list(orders)
        news = self._list_news(received)
        self._state.add_orders(received)
        if news:
            storing = asyncio.create_task(self._try_store(*news))
            self._merging.add(storing)  # The event loop keeps only weak references.
            storing.add_done_callback(self._merging.discard)
            await asyncio.wait({storing}, timeout=MERGE_SECONDS)

    async def store_missing(self) -> None:
        """Store orders that are served but could not be stored before, some at a time."""
        unclosed = self._state.orders.unclosed
        missing = [order for key, order in unclosed.items() if self._stored.get(key) != order]
        if missing and not self._merging:
            await self._try_store(*missing[:STORE_BATCH_SIZE])

    def _plan_order(self, request: Mapping[str, Any], by: Orderer) -> Order:
        order_id = _read_id(request, "id") if request.get("id") is not None else uuid4()
        state, action = self._state, request.get("action")
        at = state.wall()
        if action == ENGAGE:
            _refuse_unknown(request, "id", "action", "switch", "reason", "expires_in")
            return plan_order(request, id=order_id, by=by, at=at, plane=self.plane)
        if action != WITHDRAW:
            raise InvalidInput({"action": ["Must be engage or withdraw."]})
        _refuse_unknown(request, "id", "action", "order", "reason")
        reason = request.get("reason")
        text = reason if isinstance(reason, str) else ""
        withdrawn = self._find_withdrawable(_read_id(request, "order"))
        return plan_withdrawal(withdrawn, text, id=order_id, by=by, at=at, plane=self.plane)

    def _require_within_limits(self, order: Order) -> None:
        """Raise :class:`Forbidden` if a token gives the order that may not change the switch."""
        state, by = self._state, order.by
        for token in (state.tokens or {}).values():
            if by.type == "token" and token.token_id == by.id:
                state.owners.require_within_limits(token, order.switch)

    def _find_withdrawable(self, order_id: UUID) -> Order:
        orders = self._state.orders
        order = orders.orders.get(order_id) or self._find_given(order_id)
        if order is not None and order.action == ENGAGE:
            self._require_own(order)
            return order
        if order_id in orders.closed:
            raise _make_taken_over(order_id)
        raise NotFound(f"There is no emergency order {order_id} on this data plane.")

    def _find_given(self, given_id: UUID) -> Order | None:
        """Return the order that a relay accepted for a request with this id."""
        orders = self._state.orders.unclosed.values()
        found = [order for order in orders if order.relay and order.given_id == given_id]
        return next((order for order in found if self.is_own(order)), next(iter(found), None))

    def _refuse_given(self, order: Order) -> None:
        """Raise :class:`Conflict` if this relay accepted another order for the same id."""
        found = self._find_given(order.given_id)
        if found is not None and self.is_own(found):
            raise _make_id_taken(order)

    def is_own(self, order: Order) -> bool:
        """Return True unless this is a relay that did not accept the order."""
        key = self.relay_key
        return key is None or (order.relay is not None and order.relay.key == str(key.public))

    def _require_own(self, order: Order) -> None:
        if not self.is_own(order):
            raise Conflict(
                f"The order was given on {order.plane}. A relay can withdraw only orders that were"
                " given to it: withdraw this one there, or on a data plane."
            )

    def _refuse_ended(self, order: Order, known: Order | None) -> None:
        """Raise :class:`Conflict` if the order's id is that of an order that has ended.

        A late repetition must not look as if it blocked the switch. Soon after the order, it is the
        repetition of a request that had no answer.
        """
        orders = self._state.orders
        is_ended = order.id in orders.closed if known is None else known.id not in orders.open
        is_repetition = known is not None and order.at - known.at < REPETITION_WINDOW
        if order.action == ENGAGE and is_ended and not is_repetition:
            raise Conflict(
                f"The id {order.given_id} is that of an order that has ended: it was withdrawn, or"
                " the console has taken it over. Send this one with a new id."
            )

    def _require_room(self, order: Order) -> None:
        open_orders = self._state.orders.open
        number = len(open_orders) + sum(key not in open_orders for key in self._accepting)
        if order.action == ENGAGE and number >= MAX_OPEN_ORDERS:
            raise Conflict(
                f"{MAX_OPEN_ORDERS:,} emergency orders are open, and no more are accepted."
                " Withdraw orders that are no longer needed, or engage global:all instead."
            )

    async def _store_and_share(self, order: Order) -> Acceptance:
        error = await self._try_store(order)
        if error is None:
            await self._serving.serve(order)
        await self.share([order])
        if not self.holders(order.id):
            raise Unavailable(self._explain_failure(order, error))
        if error is not None:
            await self._serving.serve(order)
        by = f"{order.by.type}:{order.by.name}"
        what = {"order": str(order.id), "action": order.action, "switch": order.switch, "by": by}
        log.warning("emergency_order.accepted", **what)
        return self._build_acceptance(order)

    def _notify(self) -> None:
        self.on_news()

    def _explain_failure(self, order: Order, error: OSError | None) -> str:
        is_known = not isinstance(error, TimeoutError) and self.count_planes() == 1
        result = "in force" if is_known else "confirmed, but may come into force later"
        why = None if error is None else error.strerror or str(error)
        return (
            f"The order is not {result}: this data plane can't store it on its disk ({why}), and"
            f" no other one has confirmed it. Send it to another one, with the id {order.given_id}."
        )

    async def _try_store(self, *orders: Order) -> OSError | None:
        """Store orders on disk; if that fails, log the first error of an outage, and return it."""
        if self._journal is None:
            return OSError("there is no data directory")
        seconds = DISK_SECONDS + len(orders) * DISK_SECONDS_PER_ORDER
        loop = asyncio.get_running_loop()
        try:
            written = loop.run_in_executor(self._disk, self._journal.write, *orders)
            await wait_at_most(seconds, written)
        except OSError as error:  # TimeoutError is one.
            if not self._disk_fails:
                log.error("emergency_order.not_stored", order=str(orders[0].id), error=str(error))
            self._disk_fails = True
            return error
        self._disk_fails = False
        self._stored.update({order.id: order for order in orders})
        return None

    def _list_news(self, orders: Iterable[Order]) -> list[Order]:
        """Return what `orders` would add or change, as it would be kept."""
        known = self._state.orders.orders
        kept = self._state.orders.add(orders).orders
        return [order for key, order in kept.items() if known.get(key) != order]

    def _build_acceptance(self, order: Order) -> Acceptance:
        names = tuple(sorted(self.holders(order.id)))
        return Acceptance(order, names, max(self.count_planes(), len(names)))


async def _share_with_nobody(_orders: Sequence[Order]) -> None:
    pass


def _make_id_taken(order: Order) -> Conflict:
    return Conflict(
        f"The id {order.given_id} was given to another order. Send this one with a new id."
    )


def _make_taken_over(order_id: UUID) -> Conflict:
    return Conflict(
        f"The console has taken over the order {order_id}. To let traffic flow again, release the"
        " switch there."
    )


def _read_id(request: Mapping[str, Any], field: str) -> UUID:
    value = request.get(field)
    try:
        found = UUID(value) if isinstance(value, str) and len(value) == 36 else None
    except ValueError:
        found = None
    if found is None:
        raise InvalidInput({field: ["Must be a UUID."]})
    return found


def _refuse_unknown(request: Mapping[str, Any], *known: str) -> None:
    unknown = sorted(request.keys() - set(known))[:MAX_NAMED]
    if unknown:
        raise InvalidInput(
            {name: [build_unknown_message(name, known, "field")] for name in unknown}
        )
