"""Waiting for what happens elsewhere."""

import threading
import time
from collections.abc import Callable
from typing import Any


def until(holds: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait until it holds, and give what it gave; fails if it does not come to that."""
    by = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < by, "it did not come to that"
        time.sleep(0.01)
    return found


def our_threads() -> list[str]:
    """The names of the library's threads that run here."""
    return [one.name for one in threading.enumerate() if one.name.startswith("switchgear-")]
