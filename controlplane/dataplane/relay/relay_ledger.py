"""The ledger of a relay: stores reports in the spool, for the upstream.

A report is answered once it is on disk, and the spool holds it until the upstream has accepted it.
Presences, acknowledgements and `/check` counts stay in memory, within limits, until the forwarder
takes them; those that a killed process held are lost, and instances repeat them with their polls.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import structlog

from controlplane.core.errors import Unavailable
from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.ingest.check_counts import CheckCounter
from controlplane.dataplane.ingest.counted_batches import CountedBatches
from controlplane.dataplane.ingest.instance_rows import InstanceReport
from controlplane.dataplane.ingest.presence_buffer import PresenceBuffer
from controlplane.dataplane.ingest.processes import ProcessStatus
from controlplane.dataplane.ingest.relay_message import RelayedReport, RelayMessage
from controlplane.dataplane.ingest.relay_statuses import MAX_STATUSES, RelayStatuses
from controlplane.dataplane.ingest.report_writer import ReportParser
from controlplane.dataplane.memory.served_copy import Copy

from . import batch, spool
from .spool import Record, Spool, SpoolFull

REST_SECONDS = 0.01
"""Pause between two writes, so that concurrent reports share one."""
STORE_SECONDS = 5.0
MAX_PENDING_BYTES = 16 * 1024 * 1024
MAX_WRITE_BYTES = 256 * 1024
MAX_WRITE_RECORDS = 100
RETRY_SECONDS = 10
NO_BATCHES = CountedBatches(0, 0)

log = structlog.get_logger(__name__)


class PendingRecord(NamedTuple):
    record: Record
    stored: asyncio.Future[None]


class RelayLedger:
    """The ledger of one relay process; `wall` returns the upstream's time (aware, UTC).

    Nothing is stored before :meth:`run` has claimed a spool.
    """

    def __init__(self, wall: Callable[[], datetime], max_bytes: int = spool.MAX_BYTES) -> None:
        self.spool: Spool | None = None
        self.refused_sli = 0
        """Always 0: the upstream refuses SLO counts."""
        self.refused_full = 0
        """Number of reports and batches that were refused because the spool was full."""
        self.batches = Counter[str]()
        self.requests = Counter[str]()
        """Number of requests to upstreams by outcome: `accepted` or `failed`."""
        self.describe_process: Callable[[], ProcessStatus] | None = None
        self.news = asyncio.Event()
        """Set when there is something to send."""
        self.presence_buffer = PresenceBuffer(wall, lambda: self.news.set())
        self.check_counter = CheckCounter(wall)
        self.parser = ReportParser()
        self.relay_statuses = RelayStatuses(wall)
        self._wall = wall
        self._max_bytes = max_bytes
        self._pending: deque[PendingRecord] = deque()
        self._pending_bytes = 0
        self._has_pending = asyncio.Event()
        self._received: dict[UUID, CountedBatches] = {}
        """The latest batches stored, by process of the relay that made them."""
        self._is_failing = False

    async def report(
        self,
        report: InstanceReport,
        copy: Copy | None = None,
        token_id: int = 0,
        services: Collection[str] = (),
    ) -> bool:
        """Store a report in the spool; return False, because only the database knows duplicates.

        Raise :class:`Unavailable` if it can't be stored; the instance sends it again.
        """
        if report.applied_orders is not None:
            self.presence_buffer.record_orders(report.id, report.applied_orders)
        relayed = RelayedReport(
            document=report.document,
            is_final=report.is_final,
            epoch=None if copy is None else copy.publication.epoch,
            token_id=token_id,
            services=sorted(services),
            at=self._wall(),
        )
        await self._store(Record(spool.REPORT, batch.dump_report(relayed)))
        return False

    async def receive(self, message: RelayMessage) -> int:
        """Store the batches of a relay behind this one; return 0, as no report is refused here.

        Raise :class:`Unavailable` if they can't be stored.
        """
        self.relay_statuses.record(message)
        for each in message.batches:
            # One may arrive after a later one. An old one is stored, because it may be new.
            if self._received.get(each.process, NO_BATCHES).has(each.seq):
                self.batches["repeated"] += 1
                continue
            await self._store(Record(spool.BATCH, batch.dump_batch(each)))
            before = self._received.pop(each.process, NO_BATCHES)
            self._received[each.process] = before.add(each.seq) or before
            self.batches["accepted"] += 1
        while len(self._received) > MAX_STATUSES:
            del self._received[next(iter(self._received))]
        return 0

    async def run(self, config: RelayConfig) -> None:
        """Write records to a spool in the data directory, until canceled."""
        if config.folder is None:
            return
        # Events belong to one loop.
        self._has_pending, self.news = asyncio.Event(), asyncio.Event()
        if self._pending:
            self._has_pending.set()
        try:
            await self._open(config.folder.parent / "spool")
            while True:
                await self._has_pending.wait()
                self._has_pending.clear()
                while some := self._take_pending():
                    await self._write(some)
                    await asyncio.sleep(REST_SECONDS)
        finally:
            for each in self._pending:
                if not each.stored.done():
                    each.stored.set_exception(make_unavailable("is stopping"))
            self._pending.clear()
            self._pending_bytes = 0

    def close(self) -> None:
        """Release the spool for other processes; call this once :meth:`run` has ended."""
        if self.spool is not None:
            self.spool.close()
            self.spool = None

    async def _open(self, root: Path) -> None:
        """Claim a spool under `root`, again and again until the disk allows it."""
        while self.spool is None:
            try:
                self.spool = await asyncio.to_thread(Spool.claim, root, self._max_bytes)
            except OSError as error:
                self._log_failure(error)
                await asyncio.sleep(RETRY_SECONDS)
        self._is_failing = False

    def _log_failure(self, error: OSError) -> None:
        if not self._is_failing:
            log.error("spool.write_failed", error=str(error))
        self._is_failing = True

    async def _store(self, record: Record) -> None:
        size = len(record.content)
        if self.spool is None:
            raise make_unavailable("has no disk to store it on")
        if self._pending_bytes + size > MAX_PENDING_BYTES:
            raise make_unavailable("is busy")
        pending = PendingRecord(record, asyncio.get_running_loop().create_future())
        self._pending.append(pending)
        self._pending_bytes += size
        self._has_pending.set()
        try:
            async with asyncio.timeout(STORE_SECONDS):
                await pending.stored
        except TimeoutError:
            raise make_unavailable("is busy") from None

    def _take_pending(self) -> list[PendingRecord]:
        """Return the next records to write; skip those whose requests timed out."""
        some: list[PendingRecord] = []
        size = 0
        while self._pending and len(some) < MAX_WRITE_RECORDS:
            next_size = len(self._pending[0].record.content)
            if some and size + next_size > MAX_WRITE_BYTES:
                break
            one = self._pending.popleft()
            self._pending_bytes -= next_size
            if not one.stored.done():
                some.append(one)
                size += next_size
        return some

    async def _write(self, some: list[PendingRecord]) -> None:
        assert self.spool is not None  # noqa: S101 - for the type; _store checks it.
        reason = ""
        try:
            await asyncio.to_thread(self.spool.append, [each.record for each in some])
            self._is_failing = False
        except SpoolFull:
            self.refused_full += len(some)
            reason = "has no room for it until its upstream accepts what it holds"
        except OSError as error:
            self._log_failure(error)
            reason = "can't write to its disk"
        for each in some:
            if each.stored.done():
                continue
            if reason:
                each.stored.set_exception(make_unavailable(reason))
            else:
                each.stored.set_result(None)
        if not reason:
            self.news.set()


def make_unavailable(why: str) -> Unavailable:
    return Unavailable(
        f"The relay could not store this, because it {why}. Send it again with the same seq.",
        retry_after=RETRY_SECONDS,
    )
