"""Ledgers that write presence on a background loop, at a time that tests set."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from controlplane.core.models import Acknowledgement, Instance
from controlplane.dataplane.ingest.instance_ledger import InstanceLedger
from controlplane.dataplane.ingest.instance_rows import InstanceReport
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.served import EPOCH, copy

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOOT = UUID("5b8f2f0e-0000-4000-8000-000000000001")
COPY = copy(17)
A_BATCH = 3.0
"""Seconds in which a batch is surely written, also on a busy machine."""


@dataclass
class Clock:
    """The database's time, set by tests."""

    now: datetime = NOW

    def wall(self) -> datetime:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@contextmanager
def writing(idle: Following, *ledgers: InstanceLedger) -> Iterator[None]:
    """Run the ledgers on the background loop, over the test's proxied database connection."""

    async def started() -> list[asyncio.Task[None]]:
        return [asyncio.create_task(ledger.run(idle.config)) for ledger in ledgers]

    async def ended() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    tasks = idle.loop.run(started())
    try:
        yield
    finally:
        idle.loop.run(ended())


def hear(
    idle: Following,
    ledger: InstanceLedger,
    name: str,
    applied: str | None = "17",
    served: object = COPY,
) -> None:
    mark = None if applied is None else applied.encode()

    async def hear_all() -> None:
        ledger.presence_buffer.record_presence(name.encode(), mark, served)

    idle.loop.run(hear_all())


def report(seq: int = 1, **more: object) -> InstanceReport:
    fields = {
        "service": "core",
        "instance": "a1",
        "boot": BOOT,
        "started_at": NOW - timedelta(minutes=5),
        "sent_at": NOW,
        "seq": seq,
        **more,
    }
    return InstanceReport(**fields)


def row(name: str = "core/a1") -> Instance | None:
    return Instance.objects.filter(id=name).first()


def applies(name: str, version: int) -> bool:
    found = row(name)
    return found is not None and found.applied_version == version


def acks(name: str = "core/a1") -> dict[int, datetime]:
    found = Acknowledgement.objects.filter(instance=name, epoch=EPOCH)
    return dict(found.values_list("version", "acknowledged_at"))
