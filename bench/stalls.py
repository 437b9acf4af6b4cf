"""Measures stalls of the machine itself, to tell them from delays of the measured servers."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SLEEP_SECONDS = 0.01


class Stalls:
    """The longest delay, `worst_ms`, by which a short sleep ended late."""

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
    """Context manager: watch for stalls in a thread during the block."""
    stalls = Stalls()
    thread = threading.Thread(target=stalls._watch, daemon=True)
    thread.start()
    try:
        yield stalls
    finally:
        stalls._ended.set()
        thread.join()
