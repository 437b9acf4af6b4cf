"""A running ledger, and reports of breakers for it."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from controlplane.dataplane.ingest.instance_ledger import InstanceLedger, Timing
from controlplane.dataplane.ingest.instance_rows import InstanceReport
from controlplane.dataplane.ingest.report_merge import parse_report
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.ledgers import BOOT, COPY, Clock, writing
from controlplane.dataplane.tests.lines import wait_until

NEXT_BOOT = UUID("5b8f2f0e-0000-4000-8000-000000000002")
SINCE = "2026-11-21T11:58:00Z"
OPENED = {"n": 1, "from": "closed", "to": "open", "at": SINCE, "cause": "failure_rate 0.60 >= 0.50"}


def breaker(dependency: str = "core->oracle", **more: object) -> dict[str, object]:
    return {"dependency": dependency, "state": "closed", **more}


def make_report(*breakers: dict[str, object], seq: int = 1, **more: object) -> InstanceReport:
    return parse_report(
        {
            "service": "core",
            "instance": "a1",
            "boot": str(BOOT),
            "started_at": "2026-11-21T11:55:00Z",
            "sent_at": "2026-11-21T12:00:00Z",
            "seq": seq,
            "breakers": list(breakers),
            **more,
        }
    )


class Reporting:
    """A running ledger, and a clock that only tests move."""

    def __init__(self, idle: Following) -> None:
        self.clock = Clock()
        self.ledger = InstanceLedger(self.clock.wall, timing=Timing(max_pause=0.05))
        self._idle = idle

    def report(self, report: InstanceReport, after: float = 0, token_id: int = 0) -> bool:
        self.clock.later(after)
        return self._idle.loop.run(self.ledger.report(report, COPY, token_id))

    def flushed(self) -> None:
        """Write the sums now rather than in some seconds."""
        self.ledger._breaker_writer._flushed_at = float("-inf")
        wait_until(lambda: not self.ledger._breaker_writer.minutes, 5)
        self.report(make_report(instance="z9", boot=str(uuid4())))  # Written after the others.


@pytest.fixture
def at_work(idle: Following) -> Iterator[Reporting]:
    reporting = Reporting(idle)
    with writing(idle, reporting.ledger):
        yield reporting
