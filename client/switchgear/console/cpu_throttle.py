"""A throttle for the CPU time that a thread spends on messages of the console."""

import time

FREE_SECONDS, PAUSE_FACTOR, MAX_PAUSE_SECONDS = 0.01, 4, 2.0
"""CPU time without a pause; beyond that, pause `PAUSE_FACTOR` times as long, up to the maximum."""


class CpuThrottle:
    """Measures the CPU time of the current thread. Not thread-safe."""

    def __init__(self) -> None:
        self._rested_at = 0.0

    def pause_seconds(self) -> float:
        """Return the seconds to pause now; 0.0 if little CPU time was used."""
        busy = time.thread_time() - self._rested_at
        if busy <= FREE_SECONDS:
            return 0.0
        self._rested_at = time.thread_time()
        return min(busy * PAUSE_FACTOR, MAX_PAUSE_SECONDS)
