"""Keeps the book of instances: what they say they apply, what they report, and what they check.

Requests leave notes in memory and go on; one task writes them in batches, over a connection of its
own. Without the database the newest notes wait, within bounds; reports are refused, so that whoever
sent them tries again.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import structlog

from controlplane.core.errors import Unavailable
from controlplane.dataplane import database, ledger_sql, reports
from controlplane.dataplane.config import Config
from controlplane.dataplane.database import Connection
from controlplane.dataplane.deadlines import within
from controlplane.dataplane.ledger_sql import Ack
from controlplane.dataplane.reports import Report, Row
from controlplane.dataplane.roll import Roll
from controlplane.dataplane.served_copy import Copy
from controlplane.dataplane.tally import Counts, Tally

BATCH_SECONDS = 0.25
LOOK_SECONDS = 1.0
TALLY_SECONDS = 5.0
WRITE_SECONDS = 4.0
REPORT_SECONDS = 5.0
MOST_ROWS = 2000
MOST_REPORTS_AT_ONCE = 200
MOST_REPORTS = 5000
MERGES_AT_ONCE = 10

Write = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Waiting:
    """A report that somebody waits for; `epoch` is the one its version is of."""

    report: Report
    epoch: UUID | None
    at: datetime
    duplicate: asyncio.Future[bool] = field(default_factory=asyncio.Future)


class Ledger:
    """The ledger of one process. `state_wall` gives the database's time, aware, in UTC."""

    def __init__(self, state_wall: Callable[[], datetime]) -> None:
        self._wall = state_wall
        self._roll = Roll(state_wall, self._wake)
        self._tally = Tally(state_wall)
        self._waiting: deque[_Waiting] = deque()
        self._woken = asyncio.Event()
        self._tallied_at = 0.0
        self._away = False
        self._second_try = False
        self._refused = False
        self._told_of_loss = False
        self._told_of_drops = False

    def heard(self, name: bytes, applied: bytes | None, copy: Copy | None) -> None:
        """An instance polled or listened as `name`, and perhaps said what it applies.

        A bare version is of the epoch of `copy`, which is served now. Whatever is no sane name or
        mark is left alone; so nothing is raised.
        """
        self._roll.heard(name, applied, copy)

    def asked(self, caller: str, switch_ids: Iterable[str], blocked_by: str | None) -> None:
        """`caller`, an instance or `token:<name>`, asked whether it may go on: unless None, the
        switch that said no."""
        self._tally.asked(caller, switch_ids, blocked_by)

    async def report(self, report: Report, copy: Copy | None = None) -> bool:
        """Take in a report; True if it is a duplicate. What it applies is of `copy`'s epoch.

        Returns once it is committed; raises :class:`Unavailable` if that can't be within 5 s.
        """
        if self._away or len(self._waiting) >= MOST_REPORTS:
            raise _unavailable()
        epoch = None if copy is None else copy.publication.epoch
        waiting = _Waiting(report, epoch, self._wall())
        self._waiting.append(waiting)
        self._wake()
        try:
            async with asyncio.timeout(REPORT_SECONDS):
                return await waiting.duplicate
        except TimeoutError:
            raise _unavailable() from None

    async def run(self, config: Config) -> None:
        """Write what there is, supervising database sessions one after the other, until cancelled.

        No connection is made before there is something to write.
        """
        noted, self._woken = self._woken.is_set(), asyncio.Event()  # An event belongs to one loop.
        if noted:
            self._wake()
        try:
            while True:
                try:
                    await self._session(config)
                except Exception as error:
                    self._lost(error)
                await asyncio.sleep(random.uniform(0.2, 0.8))  # noqa: S311
        finally:
            self._refuse_waiting()

    def _wake(self) -> None:
        self._woken.set()

    async def _session(self, config: Config) -> None:
        while not (self._away or self._waiting or len(self._tally) or self._woken.is_set()):
            await self._pause()
        connection = await within(WRITE_SECONDS, database.connect(config))
        work: list[asyncio.Task[Any]] = []

        async def write(job: Coroutine[Any, Any, Any]) -> Any:
            work[:] = [task := asyncio.create_task(job)]
            return await within(WRITE_SECONDS, task)

        try:
            self._away = False
            while True:
                self._woken.clear()
                while await self._batch(connection, write):
                    await asyncio.sleep(0)
                await asyncio.sleep(BATCH_SECONDS)
                await self._pause()
        finally:
            # A batch that overran may still be using the socket: close it after that.
            for task in work:
                task.add_done_callback(lambda _: connection.pgconn.finish())
            if not work:
                connection.pgconn.finish()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _batch(self, connection: Connection, write: Write) -> bool:
        """Write what is due, in a transaction for what was heard and one for what was told.

        True if there may be more.
        """
        said, acks = self._roll.take(time.monotonic(), MOST_ROWS, LOOK_SECONDS)
        self._tell_of_drops()
        if said or acks:
            try:
                await write(ledger_sql.write_heard(connection, said, acks))
                self._written()
            except Exception as error:
                if not self._is_refused(connection, error):
                    self._roll.give_back(said, acks)
                    raise
        told = self._next_reports()
        counts = self._next_counts()
        if told or counts:
            try:
                answers = await write(self._write_told(connection, told, counts))
                self._written()
            except Exception as error:
                self._waiting.extendleft(reversed(told))
                if not self._is_refused(connection, error):
                    raise
                self._refuse_waiting()
            else:
                for each, duplicate in zip(told, answers, strict=True):
                    if not each.duplicate.done():
                        each.duplicate.set_result(duplicate)
        return len(said) == MOST_ROWS or len(acks) == MOST_ROWS or bool(self._waiting)

    async def _write_told(
        self, connection: Connection, told: list[_Waiting], counts: Mapping[str, Counts]
    ) -> list[bool]:
        """Merge reports and counts into their rows; for each report, whether it is a duplicate."""
        services = {each.report.id: each.report.service for each in told}
        services |= {caller: of.service for caller, of in counts.items()}
        duplicates, acks = [], []
        async with connection.transaction():
            before = await ledger_sql.lock_rows(connection, services)
            if len(before) < len(services):
                raise LookupError("an instance was pruned meanwhile")
            rows = dict(before)
            for number, each in enumerate(told):
                row = rows[each.report.id]
                merged, duplicate = reports.merge(row, each.report, each.at, each.epoch)
                duplicates.append(duplicate)
                acks += _new_acks(row, merged)
                rows[row.id] = merged
                if number % MERGES_AT_ONCE == 0:
                    await asyncio.sleep(0)  # Polls go first.
            now = self._wall()
            for number, (caller, of) in enumerate(counts.items()):
                rows[caller] = reports.asked(rows[caller], of.switches, now, of.since)
                if number % MERGES_AT_ONCE == 0:
                    await asyncio.sleep(0)
            changed = [row for name, row in rows.items() if row is not before[name]]
            await ledger_sql.store_rows(connection, changed)
            await ledger_sql.write_acks(connection, acks)
        return duplicates

    def _next_reports(self) -> list[_Waiting]:
        """The next few that somebody still waits for."""
        told: list[_Waiting] = []
        while self._waiting and len(told) < MOST_REPORTS_AT_ONCE:
            each = self._waiting.popleft()
            if not each.duplicate.done():
                told.append(each)
        return told

    def _next_counts(self) -> dict[str, Counts]:
        now = time.monotonic()
        if not len(self._tally) or now - self._tallied_at < TALLY_SECONDS:
            return {}
        self._tallied_at = now
        return self._tally.take()

    def _is_refused(self, connection: Connection, error: Exception) -> bool:
        """Whether the database is there and will not have it: a read replica, or no tables yet.

        Then the batch is dropped; later ones may fare better.
        """
        there = isinstance(error, psycopg.Error) and not connection.closed
        if not there or isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return False
        if not self._refused:
            log.warning("ledger.refused", kind=type(error).__name__, error=str(error))
        self._refused = True
        return True

    def _written(self) -> None:
        if self._refused or self._told_of_loss or self._told_of_drops:
            log.info("ledger.written_again")
        self._refused = self._told_of_loss = self._told_of_drops = self._second_try = False

    def _lost(self, error: Exception) -> None:
        """One broken connection is not a lost database: reports wait for a second try."""
        if not self._second_try:
            self._second_try = True
            self._wake()
            return
        if not self._told_of_loss:
            log.warning("ledger.database_lost", kind=type(error).__name__, error=str(error))
        self._away = self._told_of_loss = True
        self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        for each in self._waiting:
            if not each.duplicate.done():
                each.duplicate.set_exception(_unavailable())
        self._waiting.clear()

    def _tell_of_drops(self) -> None:
        dropped = self._roll.dropped + self._tally.left_out
        self._roll.dropped = self._tally.left_out = 0
        if dropped and not self._told_of_drops:
            log.warning("ledger.notes_dropped", notes=dropped)
            self._told_of_drops = True


def _new_acks(before: Row, after: Row) -> list[Ack]:
    """The step that an instance took by a report, if it took one."""
    if after.applied_epoch is None or after.applied_version is None or after.applied_at is None:
        return []
    if (after.applied_epoch, after.applied_version) == (
        before.applied_epoch,
        before.applied_version,
    ):
        return []
    return [Ack(after.applied_epoch, after.applied_version, after.id, after.applied_at)]


def _unavailable() -> Unavailable:
    return Unavailable(
        "The report could not be stored, because the database is not answering or will not be "
        "written to. Send it again, with the same seq."
    )
