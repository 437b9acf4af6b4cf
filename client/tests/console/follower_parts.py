"""A follower and its collaborators, with short timeouts."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switchgear.clock import ConsoleClock, SystemTime
from switchgear.console.file_cache import SnapshotCache
from switchgear.console.reporter import Reporter
from switchgear.console.snapshot_follower import SnapshotFollower
from switchgear.console.timings import Timings
from switchgear.evaluation.snapshot_store import SnapshotStore
from switchgear.settings import Settings
from switchgear.sli import Indicators
from tests.fake_console import TOKEN, Console
from tests.quick_client import QUICK


@dataclass
class Parts:
    settings: Settings
    store: SnapshotStore
    disk: SnapshotCache
    reporter: Reporter
    follower: SnapshotFollower

    def blocks(self, feature: str) -> bool:
        return not self.store.decide(None, feature, (), None).allowed


def parts(
    url: str,
    state_dir: Path | None = None,
    patience: Timings = QUICK,
    **more: Any,
) -> Parts:
    settings = Settings(
        url=url,
        token=TOKEN,
        state_dir=state_dir,
        **{"service": "core", "instance": "a1", "stream": True} | more,
    )
    store = SnapshotStore(ConsoleClock(SystemTime()))
    disk, reporter = SnapshotCache(settings), Reporter(settings, store, Indicators(), patience)
    follower = SnapshotFollower(settings, store, disk, reporter, patience)
    return Parts(settings, store, disk, reporter, follower)


@contextlib.contextmanager
def following(there: Console, *, is_heard: bool = True, **more: Any) -> Iterator[Parts]:
    """A follower at work, which has heard the console; afterwards it has ended, in time."""
    follower_parts = parts(there.url, **more)
    follower_parts.disk.restore(follower_parts.store)
    with raising_nothing():
        follower_parts.follower.start()
        try:
            if is_heard:
                assert follower_parts.follower.synced.wait(20), follower_parts.follower.error
            yield follower_parts
        finally:
            follower_parts.follower.stop()
            follower_parts.follower.join(10)
            assert not follower_parts.follower._thread.is_alive()


@contextlib.contextmanager
def raising_nothing() -> Iterator[None]:
    """Fail if a thread ends by an exception, or an error of the library is logged."""
    raised: list[object] = []
    before, threading.excepthook = threading.excepthook, raised.append
    handler = _Errors(raised)
    logging.getLogger("switchgear").addHandler(handler)
    try:
        yield
    finally:
        threading.excepthook = before
        logging.getLogger("switchgear").removeHandler(handler)
    assert not raised


class _Errors(logging.Handler):
    def __init__(self, raised: list[object]) -> None:
        super().__init__(logging.DEBUG)
        self._raised = raised

    def emit(self, record: logging.LogRecord) -> None:
        if record.module == "deduplicated_log":
            return  # An error of the console, or of who asks.
        if record.levelno >= logging.ERROR or "internal error of the client" in record.getMessage():
            self._raised.append(record.getMessage())
