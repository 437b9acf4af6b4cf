"""A wrong clock for a process; Python imports this module if its folder is on PYTHONPATH.

The file named by WRONG_CLOCK contains the seconds by which the clock is ahead, and may be changed
at any time. The monotonic clock is unaffected, as when a real clock is set.
"""

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import time_machine

_file = Path(os.environ["WRONG_CLOCK"])
_ahead = float(_file.read_text())
_clock = time_machine.travel(datetime.now(UTC) + timedelta(seconds=_ahead), tick=True).start()


def _follow(applied: float) -> None:
    while True:
        time.sleep(0.05)
        wanted = float(_file.read_text())
        if wanted != applied:
            _clock.shift(wanted - applied)
            applied = wanted


def _start() -> None:
    threading.Thread(target=_follow, args=(_ahead,), daemon=True).start()


_start()
os.register_at_fork(after_in_child=_start)  # A server's workers are forked, and threads are not.
