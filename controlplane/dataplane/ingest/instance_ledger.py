"""Writes presence, reports and check counts of instances to the database.

Requests leave notes in memory and go on; one task writes them in batches, over a connection of its
own. Without the database the newest notes wait, within bounds; reports are refused, so that their
senders retry.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from controlplane.core.histograms import Histogram
from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.postgres import database
from controlplane.dataplane.postgres.database import Connection

from . import instance_sql, report_writer, write_errors
from .bisect_batch import Notes, bisect, select_notes
from .breaker_writer import BreakerWriter
from .check_counts import CallerCounts, CheckCounter
from .failure_log import FailureLog
from .instance_quota import InstanceQuota
from .instance_rows import InstanceReport
from .instance_sql import Ack, Presence
from .pending_reports import WEIGHT_AT_ONCE, PendingReport, PendingReports, unavailable
from .presence_buffer import MAX_INSTANCES, PresenceBuffer

REST_SECONDS = 0.01
"""Pause between two batches of reports; those that arrive meanwhile share a transaction."""
MAX_ROWS = 2000

Write = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Timing:
    """Intervals and timeouts of a ledger, in seconds.

    Notes are collected for `batch` and counts of calls for `tally`. A report is written at once,
    or refused after `report`. A write is given up after `write`, and `look` is the longest pause.
    """

    batch: float = 0.25
    look: float = 1.0
    tally: float = 5.0
    write: float = 4.0
    report: float = 5.0


class InstanceLedger:
    """The ledger of one process.

    `state_wall` returns the database's time, aware, in UTC. Once the database has about `most`
    instances, only reports create new ones.
    """

    def __init__(
        self,
        state_wall: Callable[[], datetime],
        *,
        most: int = 2 * MAX_INSTANCES,
        timing: Timing = Timing(),
    ) -> None:
        self.refused_sli = 0
        """Counts left out, because the token may not report for the SLO's service."""
        self._timing = timing
        self._wall = state_wall
        self._presence_buffer = PresenceBuffer(state_wall, self._wake)
        self._tally = CheckCounter(state_wall)
        self._quota = InstanceQuota(most)
        self._pending = PendingReports()
        self._reader = report_writer.ReportParser()
        self._failure_log = FailureLog()
        self._breaker_writer = BreakerWriter()
        self._counts: list[tuple[str, CallerCounts]] = []
        self._woken = asyncio.Event()
        self._told = asyncio.Event()
        self._tallied_at = 0.0
        self._noted_at = float("-inf")
        self._away = False

    @property
    def acknowledged_seconds(self) -> Histogram:
        """Seconds from a change to its acknowledgement by an instance."""
        return self._presence_buffer.acknowledged_seconds

    def record_presence(
        self, name: bytes, applied: bytes | None, copy: Copy | None, *, forgets: bool = False
    ) -> None:
        """Record that an instance polled or listened as `name`, and what it applies.

        A bare version belongs to the epoch of `copy`, which is served now, unless it was reported
        before. With `forgets` the instance polled without any version, so its earlier
        acknowledgements by polls are void. Invalid names and marks are ignored; nothing is raised.
        """
        self._presence_buffer.record_presence(name, applied, copy, forgets=forgets)

    def record_check(self, caller: str, switch_ids: Iterable[str], blocked_by: str | None) -> None:
        """Count a `/check` call of `caller`, an instance or `token:<name>`.

        `blocked_by` is the switch that blocked it, if any.
        """
        self._tally.record_check(caller, switch_ids, blocked_by)

    async def read(self, document: Mapping[str, Any]) -> InstanceReport:
        """Return the report in a JSON object; raise :class:`InvalidInput` naming wrong fields."""
        return await self._reader.read(document)

    async def report(
        self,
        report: InstanceReport,
        copy: Copy | None = None,
        token_id: int = 0,
        services: Collection[str] = (),
    ) -> bool:
        """Store a report; return True if it is a duplicate.

        Its version belongs to the epoch of `copy`. If the token is limited to `services`, counts of
        other services' SLOs are left out. Returns once it is committed; raises :class:`Unavailable`
        if that takes too long.
        """
        epoch = None if copy is None else copy.publication.epoch
        waiting = PendingReport(report, epoch, self._wall(), token_id, sorted(services))
        if self._away or not self._pending.has_room(waiting):
            raise unavailable()
        self._pending.add(waiting)
        self._told.set()
        self._wake()
        try:
            async with asyncio.timeout(self._timing.report):
                return await waiting.duplicate
        except TimeoutError:
            raise unavailable() from None

    async def run(self, config: Config) -> None:
        """Write pending notes, in one database session after the other, until canceled.

        Connects only once there is something to write.
        """
        noted, self._woken = self._woken.is_set(), asyncio.Event()  # An event belongs to one loop.
        self._told = asyncio.Event()
        if noted:
            self._wake()
        notices = asyncio.create_task(self._breaker_writer.notices.run(config.redis_url))
        try:
            while True:
                try:
                    await self._session(config)
                except Exception as error:
                    self._lost(error)
                await asyncio.sleep(random.uniform(0.2, 0.8))  # noqa: S311
        finally:
            notices.cancel()
            self._pending.refuse_all()

    def _wake(self) -> None:
        self._woken.set()

    async def _session(self, config: Config) -> None:
        while not (
            self._away or self._pending or self._counts or self._tally or self._breaker_writer
        ):
            if self._woken.is_set():
                break
            await self._pause()
        connection = await wait_at_most(self._timing.write, database.connect(config))
        work: list[asyncio.Task[Any]] = []

        async def write(job: Coroutine[Any, Any, Any]) -> Any:
            work[:] = [task := asyncio.create_task(job)]
            return await wait_at_most(self._timing.write, task)

        try:
            self._away = False
            while True:
                self._told.clear()
                while await self._batch(connection, write):
                    await asyncio.sleep(0)
                await self._gather()
        finally:
            # A batch that timed out may still use the socket: close it afterwards.
            for task in work:
                task.add_done_callback(lambda _: connection.pgconn.finish())
            if not work:
                connection.pgconn.finish()

    async def _gather(self) -> None:
        """Wait for notes to accumulate, then for new ones; a report ends both waits."""
        await asyncio.sleep(REST_SECONDS)
        with contextlib.suppress(TimeoutError):
            gathered_at = self._noted_at + self._timing.batch
            async with asyncio.timeout(max(0.0, gathered_at - time.monotonic())):
                await self._told.wait()
        if not self._told.is_set():
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._timing.look):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _batch(self, connection: Connection, write: Write) -> bool:
        """Write what is due; return True if there may be more.

        Reports, presence, check counts and breaker counts have transactions of their own.
        """
        if reports := self._pending.take_batch():
            await self._write_reports(connection, write, reports)
        more_heard = False
        if time.monotonic() - self._noted_at >= self._timing.batch:
            self._woken.clear()
            said, acks = self._presence_buffer.take_due(
                time.monotonic(), MAX_ROWS, self._timing.look
            )
            self._log_drops()
            more_heard = len(said) == MAX_ROWS or len(acks) == MAX_ROWS
            if said or acks:
                await self._write_heard(connection, write, said, acks)
                self._noted_at = float("-inf") if more_heard else time.monotonic()
        if counts := self._next_counts():
            writing = self._write_counts(connection, write, counts)
            await self._or_lose(connection, "counts", writing)
        if self._breaker_writer.is_due():
            await self._or_lose(
                connection, "minutes", write(self._breaker_writer.flush_sums(connection))
            )
            await self._or_lose(
                connection, "totals", write(self._breaker_writer.flush_totals(connection))
            )
        return more_heard or bool(self._pending or self._counts)

    async def _write_heard(
        self, connection: Connection, write: Write, said: list[Presence], acks: list[Ack]
    ) -> None:
        """Write presence notes; bisect a failing batch and drop the bad notes."""
        left = [(said, acks)]
        try:
            names = {each.id for each in said} | {ack.instance for ack in acks}
            may = await write(self._quota.admit(connection, names))
            if may != names:
                left = [select_notes(may, said, acks)]
            while left:
                try:
                    await write(instance_sql.write_heard(connection, *left[-1]))
                    left.pop()
                except Exception as error:
                    if not write_errors.is_data_error(connection, error):
                        raise
                    self._halve(left, error)
            self._failure_log.record_success()
        except Exception as error:
            if not self._failure_log.is_refused(connection, error):
                for one in left:
                    self._presence_buffer.give_back(*one)
                raise

    def _halve(self, left: list[Notes], error: Exception) -> None:
        said, acks = left.pop()
        if len(said) + len(acks) == 1:
            self._presence_buffer.dropped += 1
            log.warning("ledger.note_refused", **write_errors.describe_error(error))
        else:
            left += bisect(said, acks)

    async def _write_reports(
        self, connection: Connection, write: Write, reports: Sequence[PendingReport]
    ) -> None:
        """Write reports together; after a failure that may be one report's, one by one."""
        try:
            written = await write(
                report_writer.write_reports(connection, reports, self._breaker_writer)
            )
        except Exception as error:
            self._breaker_writer.forget_dependencies()
            some = write_errors.may_write_rest(connection, error)
            if some and len(reports) == 1:
                reports[0].refuse()
                name = reports[0].report.id
                log.warning(
                    "ledger.report_refused", instance=name, **write_errors.describe_error(error)
                )
                return
            self._pending.put_back(reports, one_by_one=some)
            if self._failure_log.is_refused(connection, error):
                self._pending.refuse_all()
            elif not some:
                raise
        else:
            self._failure_log.record_success()
            self.refused_sli += len(written.refused_sli)
            self._failure_log.log_refused_sli(written.refused_sli)
            for each, duplicate in zip(reports, written.duplicates, strict=True):
                each.answer(duplicate)

    async def _write_counts(
        self, connection: Connection, write: Write, counts: dict[str, CallerCounts]
    ) -> None:
        may = await write(self._quota.admit(connection, counts.keys()))
        kept = {caller: of for caller, of in counts.items() if caller in may}
        await write(report_writer.write_counts(connection, kept, self._wall()))

    async def _or_lose(self, connection: Connection, what: str, writing: Awaitable[None]) -> None:
        """Await `writing`; counts that the database refuses are lost rather than counted twice."""
        try:
            await writing
            self._failure_log.record_success()
        except Exception as error:
            if self._failure_log.is_refused(connection, error):
                return
            if not write_errors.may_write_rest(connection, error):
                raise
            log.warning(f"ledger.{what}_refused", **write_errors.describe_error(error))

    def _next_counts(self) -> dict[str, CallerCounts]:
        """Return the next few callers' counts; new ones are taken every `Timing.tally` seconds."""
        now = time.monotonic()
        is_due = now - self._tallied_at >= self._timing.tally
        if not self._counts and len(self._tally) and is_due:
            self._tallied_at = now
            self._counts = [*self._tally.take_counts().items()]
        few: dict[str, CallerCounts] = {}
        weight = 0
        while self._counts and weight < WEIGHT_AT_ONCE:
            caller, of = self._counts.pop()
            few[caller] = of
            weight += report_writer.weigh_counts(of)
        return few

    def _lost(self, error: Exception) -> None:
        """Handle a broken session: reports wait for a second attempt, then are refused."""
        if not self._failure_log.is_loss(error):
            self._wake()
            return
        self._away = True
        self._pending.refuse_all()

    def _log_drops(self) -> None:
        dropped = self._presence_buffer.dropped + self._tally.left_out
        self._presence_buffer.dropped = self._tally.left_out = 0
        self._failure_log.log_drops(dropped)
