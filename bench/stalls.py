"""Detection of stalls of this machine, which delay servers and load alike; background threads."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLEEP_SECONDS = 0.01


class Stalls:
    """A watch for stalls of the machine; `worst_ms` is the longest delay of a short sleep's end."""

    worst_ms = 0.0

    def watch(self, ended: threading.Event) -> None:
        while not ended.is_set():
            began = time.monotonic()
            time.sleep(SLEEP_SECONDS)
            late_ms = (time.monotonic() - began - SLEEP_SECONDS) * 1e3
            self.worst_ms = max(self.worst_ms, late_ms)


@contextmanager
def watch_stalls() -> Iterator[Stalls]:
    """Context manager: during the block, record the machine's longest stall by a thread."""
    stalls = Stalls()
    with in_background(stalls.watch):
        yield stalls


@contextmanager
def in_background(run: Callable[[threading.Event], None]) -> Iterator[None]:
    """Context manager: run `run(ended)` in a thread; the block's end sets the event `ended`."""
    ended = threading.Event()
    thread = threading.Thread(target=run, args=(ended,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
