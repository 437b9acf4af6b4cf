"""The interface of ledgers: of data planes, which write to the database, and of relays."""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Protocol

from controlplane.dataplane.memory.served_copy import Copy

from .check_counts import CheckCounter
from .instance_rows import InstanceReport
from .presence_buffer import PresenceBuffer
from .processes import ProcessStatus
from .relay_message import RelayMessage
from .relay_statuses import RelayStatuses
from .report_writer import ReportParser


class Ledger(Protocol):
    """Collects polls, reports and `/check` counts of instances, and messages of relays."""

    presence_buffer: PresenceBuffer
    check_counter: CheckCounter
    parser: ReportParser
    relay_statuses: RelayStatuses
    refused_sli: int
    batches: Counter[str]
    """Number of relays' batches that were stored, by outcome; see :class:`RelayWriter`."""
    describe_process: Callable[[], ProcessStatus] | None

    async def report(
        self,
        report: InstanceReport,
        copy: Copy | None = None,
        token_id: int = 0,
        services: Collection[str] = (),
    ) -> bool:
        """Store a report durably; return True if it is known to be a duplicate.

        Raise :class:`Unavailable` if it can't be stored.
        """

    async def receive(self, message: RelayMessage) -> int:
        """Store a relay's message durably; return the number of refused reports.

        Raise :class:`Unavailable` if it can't be stored; the relay sends it again.
        """

    async def run(self, config: Any) -> None:
        """Store what requests have added, until canceled."""
