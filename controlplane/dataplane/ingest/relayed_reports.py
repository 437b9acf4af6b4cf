"""Stores the reports that relays received, as if they had been received here at that time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from controlplane.core.errors import InvalidInput

from .pending_reports import PendingReport, UnstorableReport
from .relay_message import RelayBatch, RelayedReport
from .report_writer import ReportParser

REPORTS_AT_ONCE = 200
"""Reports of a batch that are stored before the next ones are parsed."""

log = structlog.get_logger(__name__)


class RelayedReports:
    """Parses reports of relays and passes them to `store`, which waits for their commit.

    `wall` returns the database's time.
    """

    def __init__(
        self,
        parser: ReportParser,
        store: Callable[[PendingReport], Awaitable[bool]],
        wall: Callable[[], datetime],
    ) -> None:
        self._parser = parser
        self._store = store
        self._wall = wall

    async def store_all(self, batches: Sequence[RelayBatch]) -> int:
        """Store the reports of batches; return the number of refused ones.

        Invalid reports are refused and logged, because they would be refused forever. Raises
        :class:`Unavailable` if one can't be stored in time.
        """
        refused = 0
        for batch in batches:
            for start in range(0, len(batch.reports), REPORTS_AT_ONCE):
                some = batch.reports[start : start + REPORTS_AT_ONCE]
                stored = await asyncio.gather(*(self._is_stored(batch, each) for each in some))
                refused += stored.count(False)
        return refused

    async def _is_stored(self, batch: RelayBatch, relayed: RelayedReport) -> bool:
        """Store a report; return False if it is refused."""
        try:
            report = await self._parser.parse(relayed.document)
            if relayed.is_final:
                report = replace(report, is_final=True)
            at = min(relayed.at, self._wall())
            rights = relayed.token_id, relayed.services
            await self._store(PendingReport(report, relayed.epoch, at, *rights, batch.relay))
        except (InvalidInput, UnstorableReport) as error:
            log.warning("ledger.relayed_report_refused", relay=batch.relay, error=error.detail)
            return False
        return True
