"""A reporter and what it reports, without a follower."""

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from switchgear.clock import ConsoleClock, SystemTime
from switchgear.console.reporter import Reporter
from switchgear.console.timings import Timings
from switchgear.evaluation.snapshot import parse_snapshot
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from switchgear.sli import Indicators
from tests.fake_console import TOKEN, Console
from tests.quick_client import QUICK

SELDOM = 1e6


@dataclass
class Telling:
    store: SnapshotStore
    indicators: Indicators
    reporter: Reporter

    def apply(self, console: Console) -> None:
        """Put what the console says in force, as if it had come by the stream."""
        assert self.store.accept(parse_snapshot(console.document))
        self.reporter.record_applied()


@contextlib.contextmanager
def telling(
    url: str,
    *,
    every_seconds: float = SELDOM,
    stop_seconds: float = 20.0,
    patience: Timings = QUICK,
    **given: Any,
) -> Iterator[Telling]:
    """Run a reporter during the block."""
    fields = {"service": "core", "instance": "a1", **given}
    settings = Settings(url=url, token=TOKEN, **fields)
    store, indicators = SnapshotStore(ConsoleClock(SystemTime())), Indicators()
    patience = dataclasses.replace(patience, report=every_seconds)
    reporter = Reporter(settings, store, indicators, patience)
    reporter.start()
    try:
        yield Telling(store, indicators, reporter)
    finally:
        reporter.stop(stop_seconds)
