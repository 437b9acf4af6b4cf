"""A wrong clock for a whole process: with this folder on PYTHONPATH, Python itself starts with it.

The file that WRONG_CLOCK names says by how many seconds the clock is ahead, and may be changed at
any time. The monotonic clock goes on as it is, as it does when a real clock is set.
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
