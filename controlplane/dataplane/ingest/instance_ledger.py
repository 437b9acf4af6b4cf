"""The ledger of instances: presence, reports and `/check` counts, written in batches.

Requests add notes (polls, applied versions, counts) in memory; one task writes them over its own
database connection. While the database is down, the newest notes are kept within limits, and
reports are refused with 503, so that instances send them again.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.postgres import database
from controlplane.dataplane.postgres.database import Connection

from . import instance_sql, processes, report_writer, write_errors
from .breaker_writer import BreakerWriter
from .check_counts import CallerCounts, CheckCounter
from .check_sums import CheckSums
from .instance_rows import InstanceReport
from .instance_sql import Ack, InstanceQuota, Presence
from .pending_reports import (
    WEIGHT_AT_ONCE,
    PendingReport,
    PendingReports,
    UnstorableReport,
    make_unavailable,
)
from .presence_buffer import MAX_INSTANCES, PresenceBuffer, bisect_notes, select_notes
from .processes import ProcessStatus
from .relay_message import RelayMessage
from .relay_statuses import RelayStatuses
from .relay_writer import PendingMessage, RelayWriter
from .relayed_reports import RelayedReports
from .write_errors import FailureLog

REST_SECONDS = 0.01
"""Pause between two batches of reports, so that concurrent reports share a transaction."""
MAX_ROWS = 2000
REFUSED = "The database refuses the report; see the data plane's log."

Write = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Timing:
    """Intervals and timeouts of an instance ledger, in seconds.

    Presence notes are written every `batch`, counts of `/check` requests every `counts`. A report
    not written within `report` is refused; a write is canceled after `write`. The status of the
    process is written every `status`. `max_pause` is the longest pause between checks for work.
    """

    batch: float = 0.25
    max_pause: float = 1.0
    counts: float = 5.0
    status: float = 5.0
    write: float = 4.0
    report: float = 5.0


class InstanceLedger:
    """The ledger of one process: collects polls, reports and `/check` counts, and writes batches.

    `state_wall` returns the database's time (aware, UTC). Once the database has about `most`
    instances, only reports create new ones; polls and `/check` counts don't.
    """

    def __init__(
        self,
        state_wall: Callable[[], datetime],
        *,
        most: int = 2 * MAX_INSTANCES,
        timing: Timing = Timing(),
    ) -> None:
        self.refused_sli = 0
        """Number of SLO counts left out because the token may not report for the SLO's service."""
        self.describe_process: Callable[[], ProcessStatus] | None = None
        """Returns the status of this process, to be written; None writes nothing."""
        self._timing = timing
        self._wall = state_wall
        self.presence_buffer = PresenceBuffer(state_wall, lambda: self._woken.set())
        self.check_counter = CheckCounter(state_wall)
        self._quota = InstanceQuota(most)
        self._pending = PendingReports()
        self.batches = Counter[str]()
        self.relay_writer = RelayWriter(self._quota, self.batches)
        self.relay_statuses = RelayStatuses(state_wall)
        self.parser = report_writer.ReportParser()
        self._relayed_reports = RelayedReports(self.parser, self._store, state_wall)
        self._failure_log = FailureLog()
        self._breaker_writer = BreakerWriter()
        self.check_sums = CheckSums()
        self._counts: list[tuple[str, CallerCounts]] = []
        self._woken = asyncio.Event()
        self._has_reports = asyncio.Event()
        self._counts_taken_at = 0.0
        self._presence_written_at = float("-inf")
        self._status_written_at = float("-inf")
        self._is_database_away = False

    async def report(
        self,
        report: InstanceReport,
        copy: Copy | None = None,
        token_id: int = 0,
        services: Collection[str] = (),
    ) -> bool:
        """Store a report and wait for its commit; return True if it is a duplicate.

        The snapshot version in the report belongs to the epoch of `copy`. If `services` is not
        empty, SLO counts of other services are not stored. Raises :class:`Unavailable` if the
        report can't be stored in time.
        """
        if report.applied_orders is not None:
            self.presence_buffer.record_orders(report.id, report.applied_orders)
        epoch = None if copy is None else copy.publication.epoch
        return await self._store(
            PendingReport(report, epoch, self._wall(), token_id, sorted(services))
        )

    async def _store(self, waiting: PendingReport) -> bool:
        if self._is_database_away or not self._pending.has_room(waiting):
            raise make_unavailable()
        self._pending.add(waiting)
        self._has_reports.set()
        self._woken.set()
        try:
            async with asyncio.timeout(self._timing.report):
                return await waiting.duplicate
        except TimeoutError:
            raise make_unavailable() from None

    async def receive(self, message: RelayMessage) -> int:
        """Store a relay's message and wait for its commit; return the number of refused reports.

        Raises :class:`Unavailable` if the message can't be stored in time; some of it may be stored
        then, and the relay sends it again.
        """
        if self._is_database_away:
            raise make_unavailable()
        self.relay_statuses.record(message)
        written = self.relay_writer.add(message)
        self._woken.set()
        try:
            refused = await self._relayed_reports.store_all(message.batches)
            async with asyncio.timeout(self._timing.report):
                await written
        except TimeoutError:
            raise make_unavailable() from None
        finally:
            written.cancel()
        return refused

    async def run(self, config: Config) -> None:
        """Write what requests have added, until canceled; connect when there is any."""
        # An event belongs to one loop.
        noted, self._woken = self._woken.is_set(), asyncio.Event()
        self._has_reports = asyncio.Event()
        if noted:
            self._woken.set()
        notices = asyncio.create_task(self._breaker_writer.notices.run(config.redis_url))
        try:
            while True:
                try:
                    await self._session(config)
                except Exception as error:
                    # Retry once, then refuse reports until the database is back.
                    if self._failure_log.is_loss(error):
                        self._is_database_away = True
                        self._refuse_all()
                    else:
                        self._woken.set()
                await asyncio.sleep(random.uniform(0.2, 0.8))  # noqa: S311
        finally:
            notices.cancel()
            self._refuse_all()

    def _refuse_all(self) -> None:
        self._pending.refuse_all()
        self.relay_writer.refuse_all()

    async def _session(self, config: Config) -> None:
        while not (
            self._is_database_away
            or self._pending
            or self.relay_writer
            or self._counts
            or self.check_counter
            or self._breaker_writer.minutes
            or self.check_sums
            or self._is_status_due()
            or self._woken.is_set()
        ):
            await self._wait_for_wakeup()
        connection = await wait_at_most(self._timing.write, database.connect(config))
        work: list[asyncio.Task[Any]] = []

        async def write(job: Coroutine[Any, Any, Any]) -> Any:
            work[:] = [task := asyncio.create_task(job)]
            return await wait_at_most(self._timing.write, task)

        try:
            self._is_database_away = False
            while True:
                self._has_reports.clear()
                while await self._write_due(connection, write):
                    await asyncio.sleep(0)
                await self._wait_for_notes()
        finally:
            # A batch that timed out may still use the socket: close it afterwards.
            for task in work:
                task.add_done_callback(lambda _: connection.pgconn.finish())
            if not work:
                connection.pgconn.finish()

    async def _wait_for_notes(self) -> None:
        """Wait until the batch interval is over and there is something to write.

        A new report ends the wait for the interval.
        """
        await asyncio.sleep(REST_SECONDS)
        with contextlib.suppress(TimeoutError):
            gathered_at = self._presence_written_at + self._timing.batch
            async with asyncio.timeout(max(0.0, gathered_at - time.monotonic())):
                await self._has_reports.wait()
        if not self._has_reports.is_set():
            await self._wait_for_wakeup()

    async def _wait_for_wakeup(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timing.max_pause):
                await self._woken.wait()

    async def _write_due(self, connection: Connection, write: Write) -> bool:
        """Write all notes that are due; return True if more are pending."""
        if reports := self._pending.take_batch():
            await self._write_reports(connection, write, reports)
        if messages := self.relay_writer.take_batch():
            await self._write_messages(connection, write, messages)
        has_more = False
        if time.monotonic() - self._presence_written_at >= self._timing.batch:
            self._woken.clear()
            presences, acks = self.presence_buffer.take_due(
                time.monotonic(), MAX_ROWS, self._timing.max_pause
            )
            self._failure_log.log_drops(
                self.presence_buffer.dropped
                + self.check_counter.left_out
                + self.check_sums.left_out
            )
            self.presence_buffer.dropped = self.check_counter.left_out = 0
            self.check_sums.left_out = 0
            has_more = len(presences) == MAX_ROWS or len(acks) == MAX_ROWS
            if presences or acks:
                await self._write_presence(connection, write, presences, acks)
                self._presence_written_at = float("-inf") if has_more else time.monotonic()
        if counts := self._take_counts():
            writing = self._write_counts(connection, write, counts)
            await self._write_or_drop(connection, "counts", writing)
        breakers = self._breaker_writer
        if breakers.is_due():
            await self._write_or_drop(connection, "minutes", write(breakers.flush_sums(connection)))
            await self._write_or_drop(
                connection, "totals", write(breakers.flush_totals(connection))
            )
        if self._is_status_due():
            await self._write_or_drop(connection, "status", self._write_status(connection, write))
        sums = self.check_sums
        if sums.is_due():
            await self._write_or_drop(connection, "check_sums", write(sums.flush(connection)))
        return has_more or bool(self._pending or self.relay_writer or self._counts) or sums.is_due()

    async def _write_presence(
        self, connection: Connection, write: Write, presences: list[Presence], acks: list[Ack]
    ) -> None:
        """Write presences and acknowledgements; if some contain invalid data, drop only those.

        After a data error, the batch is bisected.
        """
        left = [(presences, acks)]
        try:
            names = {each.id for each in presences} | {ack.instance for ack in acks}
            admitted = await write(self._quota.admit(connection, names))
            if admitted != names:
                left = [select_notes(admitted, presences, acks)]
            while left:
                try:
                    await write(instance_sql.write_presence(connection, *left[-1]))
                    left.pop()
                except Exception as error:
                    if not write_errors.is_data_error(connection, error):
                        raise
                    presences, acks = left.pop()
                    if len(presences) + len(acks) > 1:
                        left += bisect_notes(presences, acks)
                        continue
                    self.presence_buffer.dropped += 1
                    log.warning("ledger.note_refused", **write_errors.describe_error(error))
            self._failure_log.record_success()
        except Exception as error:
            if not self._failure_log.is_refused(connection, error):
                for one in left:
                    self.presence_buffer.put_back(*one)
                raise

    async def _write_reports(
        self, connection: Connection, write: Write, reports: Sequence[PendingReport]
    ) -> None:
        """Write reports together; if one of them may be invalid, write them one by one."""
        try:
            duplicates, refused_sli = await write(
                report_writer.write_reports(
                    connection, reports, self._breaker_writer, self.check_sums
                )
            )
        except Exception as error:
            self._breaker_writer.dependencies.clear()
            some = write_errors.may_write_rest(connection, error)
            if some and len(reports) == 1:
                invalid = write_errors.is_data_error(connection, error)
                reports[0].refuse(UnstorableReport(REFUSED) if invalid else None)
                details = write_errors.describe_error(error)
                log.warning("ledger.report_refused", instance=reports[0].report.id, **details)
                return
            self._pending.put_back(reports, one_by_one=some)
            if self._failure_log.is_refused(connection, error):
                self._pending.refuse_all()
            elif not some:
                raise
        else:
            self._failure_log.record_success()
            self.refused_sli += len(refused_sli)
            self._failure_log.log_refused_sli(refused_sli)
            for each, duplicate in zip(reports, duplicates, strict=True):
                each.resolve(duplicate)

    async def _write_messages(
        self, connection: Connection, write: Write, messages: Sequence[PendingMessage]
    ) -> None:
        """Write relays' messages together; if one of them may be invalid, write them one by one."""
        try:
            await write(self.relay_writer.write(connection, messages, self._wall()))
        except Exception as error:
            some = write_errors.may_write_rest(connection, error)
            if some and len(messages) == 1:
                self.relay_writer.refuse_invalid(messages[0], connection, error)
                return
            self.relay_writer.put_back(messages, one_by_one=some)
            if self._failure_log.is_refused(connection, error):
                self._refuse_all()
            elif not some:
                raise
        else:
            self._failure_log.record_success()
            for each in messages:
                each.resolve()

    async def _write_counts(
        self, connection: Connection, write: Write, counts: dict[str, CallerCounts]
    ) -> None:
        allowed = await write(self._quota.admit(connection, counts.keys()))
        admitted = {caller: calls for caller, calls in counts.items() if caller in allowed}
        writing = report_writer.write_counts(connection, admitted, self._wall(), self.check_sums)
        await write(writing)

    def _is_status_due(self) -> bool:
        since = time.monotonic() - self._status_written_at
        return self.describe_process is not None and since >= self._timing.status

    async def _write_status(self, connection: Connection, write: Write) -> None:
        self._status_written_at = time.monotonic()
        if self.describe_process is not None:
            await write(processes.write_statuses(connection, [self.describe_process()]))

    async def _write_or_drop(
        self, connection: Connection, what: str, writing: Awaitable[None]
    ) -> None:
        try:
            await writing
            self._failure_log.record_success()
        except Exception as error:
            if self._failure_log.is_refused(connection, error):
                return
            if not write_errors.may_write_rest(connection, error):
                raise
            log.warning(f"ledger.{what}_refused", **write_errors.describe_error(error))

    def _take_counts(self) -> dict[str, CallerCounts]:
        """Return the next batch of `/check` counts by client; empty if no counts are due.

        Counts are due `Timing.counts` seconds after the previous ones.
        """
        now = time.monotonic()
        is_due = now - self._counts_taken_at >= self._timing.counts
        if not self._counts and len(self.check_counter) and is_due:
            self._counts_taken_at = now
            self._counts = [*self.check_counter.take_counts().items()]
        batch: dict[str, CallerCounts] = {}
        weight = 0
        while self._counts and weight < WEIGHT_AT_ONCE:
            caller, calls = self._counts.pop()
            batch[caller] = calls
            weight += report_writer.weigh_counts(calls)
        return batch
