"""Stalls of this machine itself, which no figure can be blamed for."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SLEEP_SECONDS = 0.01


class Stalls:
    """Measures how late short sleeps end."""

    def __init__(self) -> None:
        self.worst_ms = 0.0
        self._ended = threading.Event()

    def _watch(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            time.sleep(SLEEP_SECONDS)
            late_ms = (time.monotonic() - began - SLEEP_SECONDS) * 1e3
            self.worst_ms = max(self.worst_ms, late_ms)


@contextmanager
def watch_stalls() -> Iterator[Stalls]:
    """Measure until the block ends."""
    stalls = Stalls()
    thread = threading.Thread(target=stalls._watch, daemon=True)
    thread.start()
    try:
        yield stalls
    finally:
        stalls._ended.set()
        thread.join()
