"""Identity of this process among data planes and relays, and its current status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID, uuid4

import controlplane
from controlplane.dataplane.ingest.processes import ProcessStatus
from controlplane.dataplane.state import State

HEARD_SECONDS = 60
"""Seconds after its last request for which an instance counts as connected to a process."""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of the data plane or relay `name`; `upstream` is "" for a data plane."""

    name: str
    upstream: str = ""
    is_relay: bool = False
    process: UUID = field(default_factory=uuid4)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def describe(
        self, state: State, *, polling: int = 0, applied_orders: Mapping[str, int] | None = None
    ) -> ProcessStatus:
        """Return the status of this process; reads memory only."""
        status, now = state.status(), state.wall()
        return ProcessStatus(
            process=self.process,
            name=self.name,
            upstream=self.upstream,
            is_relay=self.is_relay,
            release=controlplane.__version__,
            epoch=status.epoch,
            version=status.version,
            age_seconds=status.age_seconds,
            held=len(state.listeners),
            instances=state.ledger.presence_buffer.count_heard(HEARD_SECONDS),
            polling=polling,
            applied_orders=applied_orders or {},
            started_at=min(self.started_at, now),
            heard_at=now,
        )
