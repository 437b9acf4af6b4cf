"""Background threads, and stalls of the machine itself, as opposed to delays of the servers."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLEEP_SECONDS = 0.01


class Stalls:
    """The longest delay, `worst_ms`, by which a short sleep ended late."""

    worst_ms = 0.0

    def watch(self, ended: threading.Event) -> None:
        while not ended.is_set():
            began = time.monotonic()
            time.sleep(SLEEP_SECONDS)
            late_ms = (time.monotonic() - began - SLEEP_SECONDS) * 1e3
            self.worst_ms = max(self.worst_ms, late_ms)


@contextmanager
def watch_stalls() -> Iterator[Stalls]:
    """Context manager: watch for stalls in a thread during the block."""
    stalls = Stalls()
    with in_background(stalls.watch):
        yield stalls


@contextmanager
def in_background(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """Context manager: call `run` in a thread, with an event that is set at the block's end."""
    ended = threading.Event()
    thread = threading.Thread(target=run, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
