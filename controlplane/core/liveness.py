"""Progress of a process's main loop and worker threads, for its liveness probe."""

import threading
import time


class Loop:
    """Watches a main loop: it hangs if no iteration began for `may_rest_seconds`."""

    def __init__(self, *, may_rest_seconds: float) -> None:
        self._may_rest = may_rest_seconds
        self._turned_at = time.monotonic()

    def record_turn(self) -> None:
        """Record an iteration of the main loop; cheap enough for every iteration."""
        self._turned_at = time.monotonic()

    @property
    def rested_seconds(self) -> float:
        return time.monotonic() - self._turned_at

    def hangs(self) -> bool:
        return self.rested_seconds > self._may_rest


class Crew:
    """Watches worker threads: they hang if each has had a task for over `task_may_take_seconds`."""

    def __init__(self, size: int, *, task_may_take_seconds: float) -> None:
        self._size = size
        self._may_take = task_may_take_seconds
        self._lock = threading.Lock()
        self._begun: dict[str, float] = {}

    def begins(self, task: str) -> None:
        with self._lock:
            self._begun[task] = time.monotonic()

    def ends(self, task: str) -> None:
        with self._lock:
            self._begun.pop(task, None)

    def hangs(self) -> bool:
        oldest_allowed = time.monotonic() - self._may_take
        with self._lock:
            late = sum(begun < oldest_allowed for begun in self._begun.values())
        return late >= self._size
