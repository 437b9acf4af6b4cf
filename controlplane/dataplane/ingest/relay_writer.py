"""Writer of relays' statuses, presences, acknowledgements and `/check` counts.

The messages of many relays share a transaction. A message is answered after its commit; a relay
sends it again otherwise.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import orjson
import structlog

from controlplane.core.errors import Unavailable
from controlplane.dataplane.postgres.database import Connection

from . import instance_sql, processes, report_merge, write_errors
from .check_sums import CheckIncrement, CheckSums, list_increments
from .counted_batches import CountedBatches
from .instance_sql import Ack, InstanceQuota, Presence
from .pending_reports import ROW_WEIGHT, WEIGHT_AT_ONCE
from .processes import ProcessStatus
from .relay_message import RelayBatch, RelayedCounts, RelayMessage
from .relay_statuses import MAX_STATUSES

STATUS_INTERVAL = timedelta(seconds=4)
"""Shortest interval between two writes of a process's status without another version."""
MAX_MESSAGES = 1000
"""Most messages that wait to be written."""

log = structlog.get_logger(__name__)

# Creates missing rows and locks the others, in order of their ids to avoid deadlocks.
LOCK_PROCESSES = """
    INSERT INTO core_dataplane AS p (process, name, upstream, is_relay, release, held, instances,
                                     started_at, heard_at)
    SELECT process, name, '', true, '', 0, 0, at, at
    FROM json_to_recordset(%s::json) AS new (process uuid, name text, at timestamptz)
    ORDER BY process
    ON CONFLICT (process) DO UPDATE SET name = p.name WHERE false
"""
READ_COUNTED = """
    SELECT process, counted_seq, counted_bits FROM core_dataplane WHERE process = ANY(%s)
"""
STORE_COUNTED = """
    UPDATE core_dataplane p SET counted_seq = new.seq, counted_bits = new.bits
    FROM json_to_recordset(%s::json) AS new (process uuid, seq bigint, bits bigint)
    WHERE p.process = new.process
"""


@dataclass(slots=True)
class PendingMessage:
    """A relay's message with a future for the request that waits for the commit."""

    message: RelayMessage
    written: asyncio.Future[None] = field(default_factory=asyncio.Future)

    @property
    def weight(self) -> int:
        notes = sum(len(each.presences) + len(each.acks) for each in self.message.batches)
        counts = [calls for each in self.message.batches for calls in each.checks]
        switches = sum(len(calls.counts.switches) for calls in counts)
        return ROW_WEIGHT + notes + ROW_WEIGHT * len(counts) + switches

    def resolve(self) -> None:
        if not self.written.done():
            self.written.set_result(None)

    def refuse(self) -> None:
        if not self.written.done():
            self.written.set_exception(make_unavailable())


class RelayWriter:
    """The messages of relays that wait to be written by one process.

    `outcomes` is the number of batches by outcome: `accepted`, `repeated` if their counts were
    stored before, or `refused` if their notes are invalid.
    """

    def __init__(self, quota: InstanceQuota, outcomes: Counter[str]) -> None:
        self.outcomes = outcomes
        self._quota = quota
        self._pending: deque[PendingMessage] = deque()
        self._one_by_one = 0
        self._written: dict[UUID, tuple[datetime, ProcessStatus]] = {}
        """The status of each process that was written last, and when."""

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, message: RelayMessage) -> asyncio.Future[None]:
        """Queue a message; return a future that ends with its commit.

        The future raises :class:`Unavailable` if the message can't be written. Raises it at once if
        too many messages wait.
        """
        if len(self._pending) >= MAX_MESSAGES:
            raise make_unavailable()
        pending = PendingMessage(message)
        self._pending.append(pending)
        return pending.written

    def take_batch(self) -> list[PendingMessage]:
        """Return the next messages for one transaction; skip those whose requests timed out."""
        few: list[PendingMessage] = []
        weight, most = 0, 1 if self._one_by_one else WEIGHT_AT_ONCE
        while self._pending and (not few or weight + self._pending[0].weight <= most):
            one = self._pending.popleft()
            self._one_by_one = max(0, self._one_by_one - 1)
            if not one.written.done():
                few.append(one)
                weight += one.weight
        return few

    def put_back(self, few: Sequence[PendingMessage], *, one_by_one: bool = False) -> None:
        self._pending.extendleft(reversed(few))
        if one_by_one:
            self._one_by_one = len(few)

    def refuse_all(self) -> None:
        for one in self._pending:
            one.refuse()
        self._pending.clear()
        self._one_by_one = 0

    def refuse_invalid(self, one: PendingMessage, connection: Connection, error: Exception) -> None:
        """End the wait for a message that can't be written alone.

        A message with invalid data counts as written, because it would fail forever.
        """
        if not write_errors.is_data_error(connection, error):
            one.refuse()
            return
        self.outcomes["refused"] += len(one.message.batches)
        details = write_errors.describe_error(error)
        log.warning("ledger.relay_notes_refused", relay=one.message.status.name, **details)
        one.resolve()

    async def write(
        self, connection: Connection, few: Sequence[PendingMessage], now: datetime
    ) -> None:
        """Write messages in two transactions, the second one for `/check` counts.

        `now` is the database's time; later times of relays count as `now`.
        """
        messages = [each.message for each in few]
        statuses = [
            status
            for one in messages
            for status in list_statuses(one, now)
            if self._is_news(status, now)
        ]
        batches = [batch for one in messages for batch in one.batches]
        presences = [clamp_presence(each, now) for batch in batches for each in batch.presences]
        acks = [
            ack._replace(at=min(ack.at, now)) for batch in batches for ack in batch.acks
        ]  # fmt: skip
        names = {each.id for each in presences} | {ack.instance for ack in acks}
        admitted = await self._quota.admit(connection, names) if names else names
        presences = [each for each in presences if each.id in admitted]
        async with connection.transaction():
            await processes.write_statuses(connection, statuses)
            await write_notes(connection, presences, [a for a in acks if a.instance in admitted])
        self._written.update((status.process, (now, status)) for status in statuses)
        if len(self._written) > MAX_STATUSES:
            self._written.clear()
        repeated = 0
        if counted := [batch for batch in batches if batch.checks]:
            callers = {each.caller for batch in counted for each in batch.checks}
            admitted = await self._quota.admit(connection, callers)
            repeated = await write_counts(connection, counted, admitted, now)
        self.outcomes["repeated"] += repeated
        self.outcomes["accepted"] += len(batches) - repeated

    def _is_news(self, status: ProcessStatus, now: datetime) -> bool:
        """Return True if a status is to be written: if it matters at once, or after a while."""
        if status.process not in self._written:
            return True
        written_at, before = self._written[status.process]
        has_changed = (status.is_stopped, status.epoch, status.version) != (
            *(before.is_stopped, before.epoch, before.version),
        )
        return has_changed or now - written_at >= STATUS_INTERVAL


async def write_notes(
    connection: Connection, presences: Sequence[Presence], acks: Sequence[Ack]
) -> None:
    if presences or acks:
        await instance_sql.write_presence(connection, presences, acks)


async def write_counts(
    connection: Connection, batches: Sequence[RelayBatch], admitted: Set[str], now: datetime
) -> int:
    """Add the `/check` counts of batches that are not counted yet, and mark them as counted.

    Counts of `admitted` clients are stored in the clients' rows and by switch and minute, all in
    the transaction that stores the batches' numbers. Return the number of batches that were counted
    before.
    """
    sums = CheckSums()
    async with connection.transaction():
        news = await _select_uncounted(connection, batches, now)
        checks = [
            each for batch in news for each in batch.checks if each.caller in admitted
        ]  # fmt: skip
        if checks:
            sums.add(await _add_to_rows(connection, checks, now))
        while sums:
            await sums.flush(connection)
    return len(batches) - len(news)


async def _select_uncounted(
    connection: Connection, batches: Sequence[RelayBatch], now: datetime
) -> list[RelayBatch]:
    """Lock the batches' processes; return the batches that are not counted, and mark them."""
    rows = {
        batch.process: {
            "process": batch.process,
            "name": batch.relay,
            "at": min(now, *(each.until for each in batch.checks)),
        }
        for batch in batches
    }
    await connection.execute(LOCK_PROCESSES, (orjson.dumps([*rows.values()]).decode(),))
    cursor = await connection.execute(READ_COUNTED, ([*rows],))
    counted = {process: CountedBatches(*numbers) for process, *numbers in await cursor.fetchall()}
    news = []
    for batch in batches:
        if (after := counted[batch.process].add(batch.seq)) is not None:
            counted[batch.process] = after
            news.append(batch)
    if news:
        marks = [
            {"process": process, **counted[process]._asdict()}
            for process in {batch.process for batch in news}
        ]
        await connection.execute(STORE_COUNTED, (orjson.dumps(marks).decode(),))
    return news


async def _add_to_rows(
    connection: Connection, checks: Sequence[RelayedCounts], now: datetime
) -> list[CheckIncrement]:
    services = {each.caller: each.counts.service for each in checks}
    before = await instance_sql.lock_rows(connection, services)
    rows = dict(before)
    increments: list[CheckIncrement] = []
    for each in checks:
        row, switches = rows[each.caller], each.counts.switches
        until = min(each.until, now)
        since = min(each.counts.since, until)
        rows[each.caller] = after = report_merge.add_calls(row, switches, until, since)
        increments += list_increments(row, after, switches, until, since)
    await instance_sql.store_rows(connection, before, [*rows.values()])
    return increments


def list_statuses(message: RelayMessage, now: datetime) -> list[ProcessStatus]:
    """Return the statuses of a message: its sender's as of now, others' as of when they were sent.

    Times after `now` count as `now`.
    """
    behind = [replace(each, heard_at=min(each.heard_at, now)) for each in message.relays]
    return [replace(message.status, heard_at=now), *behind]


def clamp_presence(presence: Presence, now: datetime) -> Presence:
    """Return the presence with times that are not after `now`."""
    applied_at = presence.applied_at
    return presence._replace(
        heard_at=min(presence.heard_at, now),
        applied_at=None if applied_at is None else min(applied_at, now),
    )


def make_unavailable() -> Unavailable:
    return Unavailable(
        "The batch could not be stored, because the database is not responding or is read-only."
        " Send it again with the same seq."
    )
