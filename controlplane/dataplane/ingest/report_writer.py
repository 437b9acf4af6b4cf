"""Writer of batches of reports and of `/check` counts; lets other tasks run in between."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog

from controlplane.dataplane.postgres.database import Connection

from . import breaker_reports, instance_sql, report_merge
from .breaker_reports import BreakerChanges
from .breaker_writer import BreakerWriter
from .check_counts import CallerCounts
from .check_sums import CheckIncrement, CheckSums, list_increments
from .instance_rows import InstanceReport, SloEvents
from .instance_sql import Ack
from .pending_reports import ROW_WEIGHT, PendingReport

log = structlog.get_logger(__name__)

STEP = 500
"""Weight of work after which other tasks run: about 5 ms."""


class _Yielder:
    def __init__(self) -> None:
        self._done = 0

    async def yield_after(self, weight: int) -> None:
        self._done += weight
        if self._done >= STEP:
            self._done = 0
            await asyncio.sleep(0)


class ReportParser:
    """Parses reports one at a time, and lets polls run after large ones."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._yielder = _Yielder()

    async def parse(self, document: Mapping[str, Any]) -> InstanceReport:
        async with self._lock:
            weight = STEP
            try:
                report = report_merge.parse_report(document)
                weight = ROW_WEIGHT + report.size
            finally:
                await self._yielder.yield_after(weight)
            return report


def weigh_counts(counts: CallerCounts) -> int:
    """Return the cost of merging a client's `/check` counts; the counts of one switch cost 1."""
    return ROW_WEIGHT + len(counts.switches)


async def write_reports(
    connection: Connection,
    pending: Sequence[PendingReport],
    breaker_writer: BreakerWriter,
    check_sums: CheckSums,
) -> tuple[list[bool], list[tuple[str, str]]]:
    """Merge reports into their instances' rows, in one transaction.

    Return a list with True for each duplicate report and False for others, and the refused SLO
    counts as (instance, SLO).
    """
    services = {each.report.id: each.report.service for each in pending}
    duplicates: list[bool] = []
    acks: list[Ack] = []
    events: list[SloEvents] = []
    checks: list[CheckIncrement] = []
    news = BreakerChanges()
    yielder = _Yielder()
    ids = await breaker_writer.resolve_ids(connection, [each.report for each in pending])
    async with connection.transaction():
        before = await instance_sql.lock_rows(connection, services)
        rows = dict(before)
        for each in pending:
            row = rows[each.report.id]
            merged, duplicate = report_merge.merge_report(
                row, each.report, each.at, each.epoch, each.token_id, each.relay
            )
            duplicates.append(duplicate)
            epoch, version, at = merged.applied_epoch, merged.applied_version, merged.applied_at
            is_new = (epoch, version) != (row.applied_epoch, row.applied_version)
            if is_new and epoch is not None and version is not None and at is not None:
                acks.append(Ack(epoch, version, row.id, at))
            events += report_merge.list_new_events(row, merged, each.report, each.services)
            checks += list_increments(row, merged, each.report.checks, each.at)
            news.add(row, merged, each.report, each.at)
            if merged is not row:
                merged = breaker_reports.drop_breakers(
                    merged, (each.report.breakers or {}).keys() - ids
                )
            rows[row.id] = merged
            await yielder.yield_after(each.weight)
        changed = [row for name, row in rows.items() if row is not before[name]]
        await instance_sql.store_rows(connection, before, changed)
        await instance_sql.write_acks(connection, acks)
        refused = await instance_sql.write_events(connection, events)
        tripped = await breaker_writer.write(connection, news, ids)
    breaker_writer.count(news, ids, tripped)
    check_sums.add(checks)
    for row in changed:
        if row.contested_at != before[row.id].contested_at:
            tokens = [token for token, _ in row.reported.get("tokens", ())]
            log.warning("instance.contested", instance=row.id, token_ids=tokens)
    return duplicates, refused


async def write_counts(
    connection: Connection,
    counts: Mapping[str, CallerCounts],
    now: datetime,
    check_sums: CheckSums,
) -> None:
    """Add `/check` counts to their clients' rows, in one transaction."""
    services = {caller: calls.service for caller, calls in counts.items()}
    checks: list[CheckIncrement] = []
    yielder = _Yielder()
    async with connection.transaction():
        before = await instance_sql.lock_rows(connection, services)
        rows = dict(before)
        for caller, calls in counts.items():
            row = rows[caller]
            rows[caller] = report_merge.add_calls(row, calls.switches, now, calls.since)
            checks += list_increments(row, rows[caller], calls.switches, now, calls.since)
            await yielder.yield_after(weigh_counts(calls))
        await instance_sql.store_rows(connection, before, [*rows.values()])
    check_sums.add(checks)
