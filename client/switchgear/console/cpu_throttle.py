"""A console that says too much must not take the processor from the service."""

import time

FREE_SECONDS, PAUSE_FACTOR, MAX_PAUSE_SECONDS = 0.01, 4, 2.0
"""Who was busy that long rests so many times longer: the service goes first. But news has not to
wait for long."""


class CpuThrottle:
    """Of one thread."""

    def __init__(self) -> None:
        self._rested_at = 0.0

    def pause_seconds(self) -> float:
        """Seconds to rest now; 0.0 as long as there is no need."""
        busy = time.thread_time() - self._rested_at
        if busy <= FREE_SECONDS:
            return 0.0
        self._rested_at = time.thread_time()
        return min(busy * PAUSE_FACTOR, MAX_PAUSE_SECONDS)
