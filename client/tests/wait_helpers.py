"""Waiting for conditions, and the threads of the library."""

import threading
import time
from collections.abc import Callable
from typing import Any


def wait_until(
    condition: Callable[[], Any], seconds: float = 60.0, explain: Callable[[], object] | str = ""
) -> Any:
    """Return what `condition` returns once that is true; fail after `seconds`."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > ends:
            raise AssertionError(
                f"not within {seconds} s: {explain() if callable(explain) else explain}"
            )
        time.sleep(0.01)
    return found


def our_threads() -> list[str]:
    """Return the names of the library's threads that run here."""
    return [one.name for one in threading.enumerate() if one.name.startswith("switchgear-")]
