"""All planes of the model, their links and the database, and what must hold after each step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import permutations
from typing import Any
from uuid import UUID, uuid5

from controlplane.dataplane.emergency.service import CLOSED_RETENTION
from switches.emergency.orders import ENGAGE, Order, Orderer, plan_withdrawal
from switches.emergency.relay_signatures import sign_order

from .clients import Client
from .database import WITHOUT_RIGHT, Database, Row, Truth
from .processes import LYING_KEY, SIGNING_KEY, Disk, Process, Relay

SWITCHES = ("feature:chat", "feature:mail", "segment:finance")
CLIENTS = (None, [str(SIGNING_KEY.public)])
"""The public keys of each client; without any, it verifies no signatures."""
PLANES = ("dp-1", "dp-1", "dp-2", "dp-3", "eu-1")
"""The plane of each process; processes of one plane share a disk. The last one is a relay."""
RELAY, UPSTREAM = "eu-1", 2
_INDEX, _SKEW = range(len(PLANES)), (0.0, 0.0, 3.0, -3.0, 4000.0, -4000.0)
DAY_SECONDS = 86_400.0
_WHICH, _MONTH = range(4), 31 * DAY_SECONDS
STEPS: dict[str, tuple[Sequence[Any], ...]] = {
    "accept": (_INDEX, range(1, 9), SWITCHES, ("kim", "kim", "kim", WITHOUT_RIGHT), _SKEW),
    "withdraw": (_INDEX, range(1, 9), _WHICH),
    "exchange": (_INDEX, _INDEX),
    "deliver": (_INDEX, range(20)),
    "lie": (_INDEX, range(1, 9), _WHICH),
    "cut_or_mend": (("dp-1", "dp-2", "dp-2"), ("dp-2", "dp-3", RELAY)),
    "read_folder": (_INDEX,),
    "kill": (_INDEX,),
    "cut_power": (_INDEX,),
    "start": (_INDEX, _SKEW),
    "restart": (_INDEX, _SKEW),
    "save": (_INDEX,),
    "poll": (_INDEX, (0, 0, 0, 1, 2, 5)),
    "die_before_serving": (_INDEX,),
    "ask": (range(len(CLIENTS)), _INDEX),
    "store": (_INDEX,),
    "lose_or_find_database": (),
    "engage": (SWITCHES,),
    "release": (SWITCHES, (False, True)),
    "reconcile": (_WHICH,),
    "back_up": (),
    "restore": (_WHICH, (True, True, True, False)),
    "begin_epoch": (),
    "pass_time": ((1.0, 30.0, 700.0, 90_000.0, _MONTH),),
}
"""The steps of a schedule: methods of :class:`World`, and what each argument is drawn from."""
OFTEN = ("accept", "exchange", "poll", "poll", "store", "reconcile", "ask", "ask", "restart")
"""Steps that are drawn more often than the others."""
ROUNDS = 8
"""Rounds of polls, exchanges and reconciliations after which all must agree."""


@dataclass
class Promise:
    """An accepted order that no person has released or withdrawn: it must be served."""

    order: Order
    disks: list[Disk] = field(default_factory=list)
    """Disks on which it is durable."""
    bound: set[Process] = field(default_factory=set)
    """Running processes that have accepted it, heard of it or read it from disk."""
    clients: set[Client] = field(default_factory=set)
    """Clients that have applied it."""
    is_ended: bool = False
    is_old: bool = False

    def __post_init__(self) -> None:
        self._ids = self.order.id, uuid5(self.order.id, self.order.switch)

    def matches(self, order: Order) -> bool:
        return order.id in self._ids and order.switch == self.order.switch


class World:
    """Four processes of three planes, a relay, one database, and the promises that were made."""

    def __init__(self) -> None:
        self.database = Database()
        self.database.engage(SWITCHES[2])
        disks = {plane: Disk() for plane in PLANES}
        self.processes = [Process(plane, disks[plane]) for plane in PLANES if plane != RELAY]
        self.processes.append(Relay(RELAY, disks[RELAY], self.processes[UPSTREAM]))
        self.cut: set[frozenset[str]] = set()
        """Pairs of planes that can't reach each other."""
        self.promises: list[Promise] = []
        self.sent: list[tuple[Order, ...]] = []
        """All messages between planes; each may arrive once more at any time."""
        self.backups = [self.database.truth]
        self.clients = [
            Client(lambda: self.database.now.timestamp(), public_keys) for public_keys in CLIENTS
        ]
        for index in range(len(PLANES)):
            self.start(index, 0)
            self.poll(index, 0)
            self.save(index)

    def do(self, name: str, *arguments: Any) -> None:
        """Do one of `STEPS`, and check that all promises are kept."""
        getattr(self, name)(*arguments)
        self.check()

    # What planes do. A process is given by its index.

    def accept(self, index: int, number: int, switch: str, by: str, skew: float) -> None:
        process = self.processes[index]
        if process.state is None:
            return
        given = Order(
            id=UUID(int=number),
            action=ENGAGE,
            switch=switch,
            reason="OpenAI 5xx on completions",
            expires_in="24h",
            by=Orderer("user", by, len(by)),
            at=self.database.now + timedelta(seconds=skew),
            plane=process.plane,
        )
        order = process.sign(given)
        if order.id in process.orders.orders:
            return  # The answer to a repeated request, or 409.
        process.merge([order])
        # The same request sent to two planes is one order, which may be withdrawn already.
        is_ended = any(each.is_ended and each.matches(order) for each in self.promises)
        self.promises.append(Promise(order, [process.disk], {process}, is_ended=is_ended))

    def withdraw(self, index: int, number: int, which: int) -> None:
        process, key = self.processes[index], UUID(int=number + 1000)
        if process.state is None:
            return
        is_relay = isinstance(process, Relay)
        found = [each for each in process.orders.open.values() if each.relay or not is_relay]
        if not found:
            return
        order = found[which % len(found)]
        given = plan_withdrawal(
            order,
            "false alarm",
            id=key,
            by=order.by,
            at=self.database.now,
            plane=process.plane,
        )
        withdrawal = process.sign(given)
        if withdrawal.id in process.orders.orders:
            return
        for promise in self.promises:
            promise.is_ended |= promise.matches(order)
        process.merge([withdrawal])

    def lie(self, index: int, number: int, which: int) -> None:
        """Let another relay withdraw an order that was not given to it: nothing may change."""
        process = self.processes[index]
        if process.state is None or not process.orders.open:
            return
        open_orders = list(process.orders.open.values())
        order = open_orders[which % len(open_orders)]
        key, now = UUID(int=number + 2000), self.database.now
        forged = plan_withdrawal(order, "forged", id=key, by=order.by, at=now, plane="us-1")
        process.merge([sign_order(forged, LYING_KEY)])
        assert order.id in process.orders.open

    def exchange(self, index: int, other: int) -> None:
        """Send what one process knows to another, if they can reach each other."""
        process, receiver = self.processes[index], self.processes[other]
        if process.state is not None and self._are_connected(process, receiver):
            orders = list(process.orders.unclosed.values())
            if isinstance(process, Relay):  # Its upstream refuses others.
                orders = [order for order in orders if order.relay is not None]
            self.sent.append(tuple(orders))
            self.deliver(other, len(self.sent) - 1)

    def deliver(self, index: int, which: int) -> None:
        """Let a message arrive, perhaps once more and late."""
        process = self.processes[index]
        if self.sent and process.state is not None:
            orders = self.sent[which % len(self.sent)]
            process.merge(orders)
            self._bind(process, orders)

    def cut_or_mend(self, plane: str, other: str) -> None:
        self.cut ^= {frozenset((plane, other))}

    def read_folder(self, index: int) -> None:
        process = self.processes[index]
        if process.state is not None:
            process.read_folder()
            self._bind(process, tuple(process.disk.journal))

    def kill(self, index: int) -> None:
        process = self.processes[index]
        process.kill()
        for promise in self.promises:
            promise.bound.discard(process)

    def cut_power(self, index: int) -> None:
        """End all processes of a plane, and lose what was not synced to its disk."""
        disk = self.processes[index].disk
        for other, process in enumerate(self.processes):
            if process.disk is disk:
                self.kill(other)
        disk.latest.clear()

    def start(self, index: int, skew: float) -> None:
        process, database = self.processes[index], self.database
        if process.state is None:
            clock = database.now + timedelta(seconds=skew)
            process.start(lambda: database.now.timestamp(), clock)
            for promise in self.promises:
                if process.disk in promise.disks:
                    promise.bound.add(process)

    def restart(self, index: int, skew: float) -> None:
        self.kill(index)
        self.start(index, skew)

    def save(self, index: int) -> None:
        process = self.processes[index]
        if process.state is not None:
            process.save()

    def poll(self, index: int, lag: int) -> None:
        """Read the database; `lag` is the number of commits by which a replica is behind.

        A replica of an epoch that the process has never seen is not read.
        """
        process, database = self.processes[index], self.database
        if process.state is None:
            return
        if isinstance(process, Relay):
            if self._are_connected(process, process.upstream):
                process.poll(database.truth, database.now)
            return
        if not database.is_up:
            return
        replica = database.history[max(0, len(database.history) - 1 - lag)]
        published, epoch = process.state.published, replica.publication.epoch
        is_known = published is not None and published.publication.epoch == epoch
        is_current = epoch == database.truth.publication.epoch
        process.poll(replica if is_known or is_current else database.truth, database.now)

    def die_before_serving(self, index: int) -> None:
        process, database = self.processes[index], self.database
        is_relay = isinstance(process, Relay)
        if (database.is_up or is_relay) and process.state is not None:
            process.poll(database.truth, database.now, dies_before_serving=True)
            self.kill(index)

    def ask(self, index: int, process_index: int) -> None:
        """Let a client poll a process."""
        client, process = self.clients[index], self.processes[process_index]
        if process.state is None or process.state.copy is None:
            return
        client.poll(process.state.copy)
        for promise in self.promises:
            if client.has_applied(str(promise.order.id)):
                promise.clients.add(client)

    def store(self, index: int) -> None:
        process = self.processes[index]
        is_relay = isinstance(process, Relay)
        if self.database.is_up and process.state is not None and not is_relay:
            self.database.insert(process.orders.unclosed.values())
            process.notice_closed(self.database.truth)

    # What happens to the database, and what people do there.

    def lose_or_find_database(self) -> None:
        self.database.is_up = not self.database.is_up

    def engage(self, switch: str) -> None:
        if self.database.is_up:
            self.database.engage(switch)

    def release(self, switch: str, by_ramp: bool) -> None:
        database = self.database
        if not database.is_up or switch not in database.truth.entries:
            return
        if by_ramp:
            database.ramp(switch)
        else:
            database.release(switch)
        for promise in self.promises:
            row = database.truth.find_row(promise.order)
            # A person releases what the console shows: orders that it has taken over.
            if promise.order.switch == switch and row is not None and row.closed_at is not None:
                promise.is_ended = True

    def reconcile(self, which: int) -> None:
        pending = self.database.pending()
        if not pending or not self.database.is_up:
            return
        row = pending[which % len(pending)]
        self.database.reconcile(row)
        after = self.database.truth.rows[row.order.id]
        if after.state == "refused" and after.closed_at is not None:
            for promise in self.promises:
                promise.is_ended |= promise.matches(row.order)

    def back_up(self) -> None:
        self.backups.append(self.database.truth)

    def restore(self, which: int, begins_epoch: bool) -> None:
        """Restore a backup, unless it is older than the orders that planes keep."""
        backup = self.backups[which % len(self.backups)]
        age = self.database.now - backup.publication.published_at
        if self.database.is_up and age < CLOSED_RETENTION:
            self.database.restore(backup, begins_epoch=begins_epoch)
            for promise in self.promises:  # Clients can't tell what a restored backup lost.
                promise.clients.clear()

    def begin_epoch(self) -> None:
        if self.database.is_up and self.database.is_restored:
            self.database.begin_epoch()

    def pass_time(self, seconds: float) -> None:
        self.database.now += timedelta(seconds=seconds)
        if seconds > DAY_SECONDS:
            for promise in self.promises:  # Clients may drop an order two days after its arrival.
                promise.is_old = True

    # What must hold.

    def check(self) -> None:
        for promise in self.promises:
            if promise.is_ended:
                continue
            for process in promise.bound:
                assert process.is_engaged(promise.order.switch) is not False, (
                    f"{process.plane} serves {promise.order.switch} as released"
                )
            for client in promise.clients if self._must_clients_keep(promise) else ():
                switch = promise.order.switch
                assert client.is_engaged(switch), f"a client lets {switch} go"
        for process in self.processes:
            published = None if process.state is None else process.state.published
            for entry in () if published is None else published.entries.values():
                if entry.state == "engaged":
                    assert process.is_engaged(entry.id), f"{process.plane} lets {entry.id} go"

    def heal(self) -> None:
        """Bring all back, and check that all agree with the database in the end."""
        database = self.database
        database.is_up = True
        self.cut.clear()
        if database.is_restored:
            database.begin_epoch()
        indexes = range(len(self.processes))
        for index in indexes:
            self.start(index, 0)
        self.check()
        for _ in range(ROUNDS):
            for index in indexes:
                self.read_folder(index)
                self.poll(index, 0)
                self.store(index)
                self.check()
            for one, other in permutations(indexes, 2):
                self.exchange(one, other)
            self.check()
            self.pass_time(700)
            while any(self._is_due(row) for row in database.pending()):
                for index in range(len(database.pending())):
                    self.reconcile(index)
            for index in indexes:
                self.poll(index, 0)
            self.check()
        self._check_agreement(database.truth)

    def _check_agreement(self, truth: Truth) -> None:
        assert not self.database.pending()
        for process in self.processes:
            copy, orders = process.live.copy, process.orders
            assert copy is not None
            assert copy.publication == truth.publication
            assert not orders.open, f"{process.plane} never hears of the end of {orders.open}"
            assert not orders.unclosed
            assert copy.orders_hash == ""
            assert dict(copy.entries) == dict(truth.entries)
        for promise in self.promises:
            row = truth.find_row(promise.order)
            if not promise.is_ended:
                assert truth.entries[promise.order.switch].state == "engaged"
                assert row is not None
            if row is not None:
                assert row.state in ("reconciled", "attached", "refused", "withdrawn")

    def _are_connected(self, process: Process, other: Process) -> bool:
        """Return False for planes that are cut off; a relay reaches its upstream alone."""
        one, another = (process, other) if isinstance(process, Relay) else (other, process)
        if isinstance(one, Relay) and another not in (one, one.upstream):
            return False
        return frozenset((process.plane, other.plane)) not in self.cut

    def _must_clients_keep(self, promise: Promise) -> bool:
        """Return False for an order that is old, or whose id was given to another switch, too."""
        order = promise.order
        return not promise.is_old and all(
            each.order.id != order.id or each.order.switch == order.switch for each in self.promises
        )

    def _is_due(self, row: Row) -> bool:
        return row.blocks_until is None or row.blocks_until <= self.database.now

    def _bind(self, process: Process, orders: tuple[Order, ...]) -> None:
        for promise in self.promises:
            if any(promise.matches(order) for order in orders):
                promise.bound.add(process)
                if process.disk not in promise.disks:
                    promise.disks.append(process.disk)
