"""Messages of relays, for tests of those who receive them."""

from datetime import datetime, timedelta
from uuid import UUID

from controlplane.dataplane.ingest.check_counts import CallerCounts
from controlplane.dataplane.ingest.instance_sql import Ack, Presence
from controlplane.dataplane.ingest.processes import ProcessStatus
from controlplane.dataplane.ingest.relay_message import (
    RelayBatch,
    RelayedCounts,
    RelayedReport,
    RelayMessage,
)
from controlplane.dataplane.tests.ledgers import BOOT, NOW
from controlplane.dataplane.tests.served import EPOCH

EAST = UUID("00000000-0000-4000-8000-00000000ea57")
WEST = UUID("00000000-0000-4000-8000-0000000003e5")


def make_status(process: UUID = EAST, name: str = "east", **more: object) -> ProcessStatus:
    fields = {"is_relay": True, "started_at": NOW, "heard_at": NOW, **more}
    return ProcessStatus(process=process, name=name, **fields)


def make_message(
    *batches: RelayBatch,
    status: ProcessStatus | None = None,
    relays: tuple[ProcessStatus, ...] = (),
) -> RelayMessage:
    return RelayMessage(status=status or make_status(), relays=relays, batches=batches)


def make_batch(seq: int = 1, **notes: object) -> RelayBatch:
    fields = {"relay": "east", "process": EAST, "seq": seq, **notes}
    return RelayBatch(**fields)


def make_presence(
    name: str = "core/a1", version: int | None = 17, at: datetime = NOW, relay: str = "east"
) -> Presence:
    service = name.partition("/")[0]
    if version is None:
        return Presence(name, service, at, None, None, None, relay)
    return Presence(name, service, at, EPOCH, version, at, relay)


def make_ack(name: str = "core/a1", version: int = 17, at: datetime = NOW) -> Ack:
    return Ack(EPOCH, version, name, at)


def make_document(seq: int = 1, boot: UUID = BOOT, **more: object) -> dict[str, object]:
    return {
        "service": "core",
        "instance": "a1",
        "boot": str(boot),
        "started_at": (NOW - timedelta(minutes=5)).isoformat(),
        "sent_at": NOW.isoformat(),
        "seq": seq,
        **more,
    }


def make_report(seq: int = 1, at: datetime = NOW, **more: object) -> RelayedReport:
    return RelayedReport(
        document=make_document(seq, **more),
        is_final=False,
        epoch=EPOCH,
        token_id=7,
        services=(),
        at=at,
    )


def make_counts(
    caller: str = "token:billing", allowed: int = 3, blocked: int = 1, until: datetime = NOW
) -> RelayedCounts:
    service = caller if caller.startswith("token:") else caller.partition("/")[0]
    since = until - timedelta(seconds=5)
    counts = CallerCounts(service, since, {"segment:a": [allowed, blocked]})
    return RelayedCounts(caller=caller, until=until, counts=counts)
