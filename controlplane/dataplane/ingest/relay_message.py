"""Messages of relays to their upstream: statuses of processes, and batches of instances' notes.

A batch is identified by `process` and `seq` on its whole way, also through other relays, so that
its `/check` counts are stored once. Reports carry the counters of a boot, presences and
acknowledgements are compared by time: those may arrive repeatedly and in any order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from .check_counts import CallerCounts
from .instance_sql import Ack, Presence
from .processes import ProcessStatus


@dataclass(frozen=True, kw_only=True)
class RelayedReport:
    """A report that a relay received at `at`, with the rights of the token that sent it.

    `document` is the report as sent; its snapshot version belongs to `epoch`. `services` are those
    that the token is limited to; empty if it is not limited.
    """

    document: Mapping[str, Any]
    is_final: bool
    epoch: UUID | None
    token_id: int
    services: Sequence[str]
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RelayedCounts:
    """The `/check` requests of `caller` until `until`."""

    caller: str
    until: datetime
    counts: CallerCounts


@dataclass(frozen=True, kw_only=True)
class RelayBatch:
    """Notes that the relay `relay` took from instances, under its `process` and `seq`."""

    relay: str
    process: UUID
    seq: int
    presences: Sequence[Presence] = ()
    acks: Sequence[Ack] = ()
    reports: Sequence[RelayedReport] = ()
    checks: Sequence[RelayedCounts] = ()


@dataclass(frozen=True, kw_only=True)
class RelayMessage:
    """The statuses of a relay's process and of relays behind it, and batches of theirs."""

    status: ProcessStatus
    relays: Sequence[ProcessStatus] = ()
    batches: Sequence[RelayBatch] = ()
