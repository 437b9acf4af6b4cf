"""The database of the model: episodes, emergency orders, versions, epochs and backups.

It reconciles by the contract of the console; the console's own tests check the real code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal
from uuid import UUID, uuid5

from controlplane.dataplane.memory.order_set import ClosedOrder, ClosedOrders
from switches.emergency.orders import ENGAGE, Order
from switches.snapshot import SnapshotEntry, SnapshotVersion

FIRST_EPOCH = UUID("8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11")
BEGAN = datetime(2026, 11, 28, 2, tzinfo=UTC)
REFUSED_BLOCKS = timedelta(minutes=10)
RECENT = timedelta(days=30)
"""Time for which each read returns closed orders, whether the reader knows them or not."""
WITHOUT_RIGHT = "amir"

RowState = Literal["received", "reconciled", "attached", "refused", "withdrawn", "late_withdrawal"]


@dataclass(frozen=True)
class Row:
    """An emergency order in the database."""

    order: Order
    state: RowState = "received"
    blocks_until: datetime | None = None
    closed_at: datetime | None = None


@dataclass(frozen=True)
class Truth:
    """The database's content at one moment. `entries` are the open episodes."""

    publication: SnapshotVersion
    entries: Mapping[str, SnapshotEntry] = field(default_factory=dict)
    rows: Mapping[UUID, Row] = field(default_factory=dict)

    def read_closed(self, known: Iterable[UUID]) -> ClosedOrders:
        """Return the orders closed lately, and those of `known` that are closed."""
        asked, now = frozenset(known), self.publication.published_at
        return {
            key: ClosedOrder(row.closed_at, row.order.subject)
            for key, row in self.rows.items()
            if row.closed_at is not None and (row.closed_at > now - RECENT or key in asked)
        }

    def find_row(self, order: Order) -> Row | None:
        """Return the row of an order, which may have an id of its own there."""
        for key in (order.id, uuid5(order.id, order.subject)):
            row = self.rows.get(key)
            if row is not None and row.order.subject == order.subject:
                return row
        return None


class Database:
    """The one writer; `history` holds each content that was committed, the latest last."""

    def __init__(self) -> None:
        self.now = BEGAN
        self.truth = Truth(SnapshotVersion(FIRST_EPOCH, 1, BEGAN))
        self.history = [self.truth]
        self.is_up = True
        self.is_restored = False
        """True from the restoring of a backup until a new epoch begins."""
        self.episodes_made: list[UUID] = []
        """The orders from which episodes were made, in this line of history."""

    def engage(self, switch: str) -> None:
        self._publish({**self.truth.entries, switch: self._episode(switch, self.now)})

    def release(self, switch: str) -> None:
        self._publish({key: one for key, one in self.truth.entries.items() if key != switch})

    def ramp(self, switch: str) -> None:
        entry = replace(self.truth.entries[switch], allow_percent=Decimal(40))
        self._publish({**self.truth.entries, switch: entry})

    def restore(self, backup: Truth, *, begins_epoch: bool) -> None:
        """Replace the content by an earlier one, in a new epoch or forgetting to begin one."""
        self.truth = backup
        self.is_restored = True
        self.history.append(backup)
        if begins_epoch:
            self.begin_epoch()

    def begin_epoch(self) -> None:
        self.is_restored = False
        epoch = uuid5(self.truth.publication.epoch, str(len(self.history)))
        version = self.truth.publication.version + 1
        self._commit(replace(self.truth, publication=SnapshotVersion(epoch, version, self._tick())))

    def insert(self, orders: Iterable[Order]) -> None:
        """Insert the orders whose ids are not there yet; the version stays."""
        rows = dict(self.truth.rows)
        for order in orders:
            rows.setdefault(order.id, Row(order))
        self._commit(replace(self.truth, rows=rows))

    def pending(self) -> list[Row]:
        return [row for row in self.truth.rows.values() if row.closed_at is None]

    def reconcile(self, row: Row) -> None:
        """Turn an order into an episode, or end it in another way, in one transaction."""
        order, entries = row.order, dict(self.truth.entries)
        if order.action != ENGAGE:
            taken = self.truth.rows.get(order.withdraws or order.id)
            if taken is not None and not order.may_withdraw(taken.order):
                self._close(row, "refused", entries)
                return
            is_late = taken is not None and taken.state in ("reconciled", "attached")
            self._close(row, "late_withdrawal" if is_late else "withdrawn", entries)
        elif self._is_withdrawn(order):
            self._close(row, "withdrawn", entries)
        elif order.by.name == WITHOUT_RIGHT:
            if row.blocks_until is None:
                refused = replace(row, state="refused", blocks_until=self.now + REFUSED_BLOCKS)
                rows = {**self.truth.rows, order.id: refused}
                self._commit(replace(self.truth, rows=rows))
            elif row.blocks_until <= self.now:
                self._close(row, "refused", entries)
        else:
            present = entries.get(order.switch)
            is_attached = present is not None and present.state == "engaged"
            if not is_attached:
                entries[order.switch] = self._episode(order.switch, order.at)
            self._close(row, "attached" if is_attached else "reconciled", entries)

    def _is_withdrawn(self, order: Order) -> bool:
        return any(
            row.order.withdraws == order.id and row.order.may_withdraw(order)
            for row in self.truth.rows.values()
        )

    def _close(self, row: Row, state: RowState, entries: Mapping[str, SnapshotEntry]) -> None:
        closed = replace(row, state=state, closed_at=self.now)
        self._publish(entries, {**self.truth.rows, row.order.id: closed})

    def _publish(
        self, entries: Mapping[str, SnapshotEntry], rows: Mapping[UUID, Row] | None = None
    ) -> None:
        before = self.truth.publication
        publication = SnapshotVersion(before.epoch, before.version + 1, self._tick())
        self._commit(Truth(publication, entries, self.truth.rows if rows is None else rows))

    def _commit(self, truth: Truth) -> None:
        self.truth = truth
        self.history.append(truth)

    def _tick(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    def _episode(self, switch: str, at: datetime) -> SnapshotEntry:
        scope, _, key = switch.partition(":")
        return SnapshotEntry(switch, scope, key, Decimal(0), "salt", "episode", at, None, "hold")
